"""The flow AI_OPS: a report over the firing alerts, a section for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from attrs import frozen

from casenotes.adapters.agents import composing, planning, sections
from casenotes.adapters.agents.alerts import Alert, AlertState, firing
from casenotes.adapters.agents.findings.model import Role, code, moment
from casenotes.adapters.agents.focus import Focus, focus_on
from casenotes.adapters.agents.investigating import Investigation, listed
from casenotes.adapters.agents.looking import Call
from casenotes.adapters.agents.reasoning import RULES, Draft, Reasoner, written
from casenotes.adapters.agents.sections import Case
from casenotes.ports.agent import (
    ALERTS_TOOL,
    RUNBOOK_TOOL,
    AgentEvent,
    Answered,
    Chunk,
    Lookup,
    Observation,
    ObservationStatus,
    Progress,
    StepTaken,
)

MAX_GROUPS = 12
"""Groups of alerts that are investigated; those past it are named and not looked into."""

LOOKUPS_PER_GROUP = 6
"""New lookups for one group at the most, besides its runbook. What an earlier group looked at is used again."""

MAX_NAMED = 10
"""Alerts of one group that are listed line by line."""


@frozen
class Group:
    """Alerts of one name in one namespace."""

    name: str
    namespace: str
    alerts: tuple[Alert, ...]

    @property
    def title(self) -> str:
        """The group as a heading names it."""
        return self.name + (f" in {self.namespace}" if self.namespace else "")


def grouped(alerts: Sequence[Alert]) -> list[Group]:
    """The alerts by name and namespace, in the order in which each group is first met."""
    groups: dict[tuple[str, str], list[Alert]] = {}
    for alert in alerts:
        groups.setdefault((alert.name, alert.namespace), []).append(alert)
    return [Group(name, namespace, tuple(members)) for (name, namespace), members in groups.items()]


async def ai_ops(investigation: Investigation, reasoner: Reasoner = RULES) -> AsyncIterator[AgentEvent]:
    """Report on the firing alerts: those of the enquiry, else those of the source."""
    yield Progress("reading the firing alerts")
    yield StepTaken("planner", "plan", input="report on the firing alerts", output="the firing alerts first")
    async for event in _read_alerts(investigation):
        yield event
    call = investigation.alerts_call
    assert call is not None
    if call.failed is not None:
        yield Chunk(f"# Alert report\n\nThe firing alerts could not be read: {call.failed} {call.cite}.\n")
        yield Answered(degraded=True)
        return
    groups = grouped(firing(investigation.alerts))
    titles = "\n".join(group.title for group in groups) or "no alert fires"
    yield StepTaken("planner", "plan", input=f"{len(investigation.alerts)} alerts", output=titles)
    for line in _opening(investigation, groups, call):
        yield Chunk(line)
    for number, group in enumerate(groups, 1):
        yield Progress(f"alert {number} of {len(groups)}: {group.title}")
        if number > MAX_GROUPS:
            yield Chunk(_not_investigated(group, call))
            continue
        before = len(investigation.looking.calls)
        async for event in _investigate(investigation, reasoner, group):
            yield event
        new = investigation.looking.calls[before:]
        async for event in _section(investigation, reasoner, group, new):
            yield event
    for line in _quiet(investigation.alerts, call):
        yield Chunk(line)
    yield Answered(degraded=reasoner.failed is not None, self_evaluation=reasoner.found_of_itself)


async def _read_alerts(investigation: Investigation) -> AsyncIterator[AgentEvent]:
    given = investigation.enquiry.alerts
    if given is not None:
        shown = Observation(ObservationStatus.SUCCESS, list(given))
        yield investigation.looking.take(Lookup(ALERTS_TOOL), shown)
    else:
        yield await investigation.looking.look(Lookup(ALERTS_TOOL))
    investigation.read_alerts()
    investigation.offered = tuple(await investigation.source.offer())
    await investigation.learn("")


async def _investigate(
    investigation: Investigation, reasoner: Reasoner, group: Group
) -> AsyncIterator[AgentEvent]:
    focus = focus_on(group.alerts)
    runbook = Lookup(RUNBOOK_TOOL, {"alertname": group.name})
    plan = [runbook] if investigation.looking.made(runbook) is None else []
    plan += [
        lookup
        for lookup in investigation.plan(planning.USEFUL, focus)
        if lookup.tool not in (ALERTS_TOOL, RUNBOOK_TOOL)
    ][: LOOKUPS_PER_GROUP // 2]
    yield StepTaken("executor", "execute", input=group.title, output=listed(plan))
    async for event in investigation.look(plan):
        yield event
    # what was seen may lead elsewhere: the second half is planned anew
    further = [
        lookup
        for lookup in investigation.plan(planning.USEFUL, focus)
        if lookup.tool not in (ALERTS_TOOL, RUNBOOK_TOOL)
    ]
    room = LOOKUPS_PER_GROUP - LOOKUPS_PER_GROUP // 2
    choice = await reasoner.choose(investigation, further, room, focus)
    for step in choice.steps:
        yield step
    async for event in investigation.look(choice.lookups):
        yield event


def _opening(investigation: Investigation, groups: Sequence[Group], call: Call) -> list[str]:
    number = sum(len(group.alerts) for group in groups)
    if not number:
        return [
            "# Alert report\n",
            "\n",
            f"No alert is firing {call.cite}. There is nothing to investigate.\n",
        ]
    kinds = f" of {len(groups)} kinds" if len(groups) > 1 else ""
    partly = f" Not all of them were read: {left_out}." if (left_out := call.observation.left_out) else ""
    return [
        "# Alert report\n",
        "\n",
        f"{number} alert{'s are' if number != 1 else ' is'} firing{kinds} {call.cite}.{partly}\n",
    ]


async def _section(
    investigation: Investigation, reasoner: Reasoner, group: Group, new: Sequence[Call]
) -> AsyncIterator[AgentEvent]:
    """What fires and what is missing are said by the rules; what it means, by the reasoner."""
    case = _case(investigation, group)
    for line in ["", f"## {_heading(group.title)}", "", *_alerts(group, case), ""]:
        yield Chunk(line + "\n")
    draft = Draft(group.title, _shown(investigation, group, (*case.calls, *new)), _finding(case))
    async for event in written(reasoner, draft):
        yield event
    closing = sections.section("Evidence gaps", _gaps(investigation, group, case) or ["- None known."])
    for line in [*closing, "**Next action**", "", *_next(case)]:
        yield Chunk(line + "\n")


def _finding(case: Case) -> list[str]:
    causes = case.picture.causes
    unknown = ["**No cause is shown** by what was looked at.", ""]
    lines = sections.pointer(case, causes[0]) if causes else unknown
    lines += sections.section("What the evidence shows", composing.statements(case, causes[:1]))
    lines += sections.how_linked(case) + sections.aside(case) + sections.runbook(case)
    return [line + "\n" for line in lines]


def _shown(investigation: Investigation, group: Group, near: Sequence[Call]) -> tuple[Call, ...]:
    """The calls that a section may rest on: the alerts, the runbook, what bears on the group or was made for it."""
    runbook = investigation.looking.made(Lookup(RUNBOOK_TOOL, {"alertname": group.name}))
    calls = [call for call in (investigation.alerts_call, runbook, *near) if call is not None]
    return tuple(sorted({call.number: call for call in calls}.values(), key=lambda call: call.number))


def _case(investigation: Investigation, group: Group) -> Case:
    focus = focus_on(group.alerts)
    return Case(
        focus,
        investigation.picture(focus),
        _relevant(investigation, focus),
        firing(investigation.alerts),
        investigation.alerts_call,
    )


def _relevant(investigation: Investigation, focus: Focus) -> tuple[Call, ...]:
    """The calls that bear on this focus: those for its subjects, its links, or nobody in particular."""
    aim = investigation.aim(focus)
    return tuple(
        call
        for call in investigation.looking.calls
        if call.lookup.tool not in (ALERTS_TOOL, RUNBOOK_TOOL)
        and planning.score(call.lookup, aim) >= planning.USEFUL
    )


def _alerts(group: Group, case: Case) -> list[str]:
    lines = sections.alert_lines(group.alerts[:MAX_NAMED], case.alerts_call)
    if len(group.alerts) > MAX_NAMED and case.alerts_call is not None:
        lines.append(f"- And {len(group.alerts) - MAX_NAMED} more of them {case.alerts_call.cite}.")
    lines += sections.value_lines(case.picture, [group.name])
    return lines


def _gaps(investigation: Investigation, group: Group, case: Case) -> list[str]:
    lines = sections.gap_lines(case)
    runbook = investigation.looking.made(Lookup(RUNBOOK_TOOL, {"alertname": group.name}))
    if runbook is not None and runbook.failed:
        lost = f"the runbook for {code(group.name)}: {code(runbook.failed, 160)}"
        lines.insert(0, f"- Could not be looked up: {lost} {runbook.cite}.")
    elif runbook is not None and runbook.empty:
        lines.insert(0, f"- Not found: a runbook for {code(group.name)} {runbook.cite}.")
    if not any(sections.is_about(placed) for placed in case.picture.placed):
        lines.append("- Not found: any finding on what this alert is about.")
    if not case.focus.subjects:
        lines.append("- The labels of this alert name no workload: nothing could be told apart as its own.")
    return lines


def _next(case: Case) -> list[str]:
    acts = sections.action_lines(case)[:1]
    if acts:
        return acts
    for placed in case.picture.placed:
        if placed.cited.finding.role is Role.ADVICE and sections.is_own_runbook(case, placed):
            return [f"- Follow the runbook {placed.cited.citation}."]
    cite = f" {case.alerts_call.cite}" if case.alerts_call else ""
    return [f"- Look at the alert's own expression and target by hand: nothing seen here explains it{cite}."]


def _not_investigated(group: Group, call: Call) -> str:
    count = f"{len(group.alerts)} alert{'s' * (len(group.alerts) != 1)} {call.cite}"
    return (
        f"\n## {_heading(group.title)}\n\n{count}. Not investigated: a report looks into {MAX_GROUPS} kinds.\n"
        "\n**Next action**\n\n- Run a report on this alert alone.\n"
    )


def _heading(title: str) -> str:
    return title.replace("`", "'")


def _quiet(alerts: Sequence[Alert], call: Call) -> list[str]:
    """Alerts that do not fire now: told apart, and not investigated."""
    lines: list[str] = []
    for state, words in ((AlertState.SUPPRESSED, "Suppressed"), (AlertState.RESOLVED, "Resolved")):
        names = dict.fromkeys(
            code(alert.name) + (f" (since {moment(alert.since)})" if alert.since else "")
            for alert in alerts
            if alert.state is state
        )
        if names:
            shown = ", ".join(list(names)[:MAX_NAMED])
            more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
            lines.append(f"- {words}, not investigated: {shown}{more} {call.cite}.")
    return [line + "\n" for line in ["", "## Not firing", "", *lines]] if lines else []
