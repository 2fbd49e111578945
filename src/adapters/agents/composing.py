"""The answer to a question, in Markdown: only what the evidence shows, every statement with its citation."""

from __future__ import annotations

from collections.abc import Sequence

from casenotes.adapters.agents.findings import ranking
from casenotes.adapters.agents.findings.model import Kind, Role, code
from casenotes.adapters.agents.findings.names import owner_of
from casenotes.adapters.agents.focus import Focus, Topic
from casenotes.adapters.agents.linking import Picture, Placed, Standing
from casenotes.adapters.agents.sections import (
    MAX_GAPS,
    MAX_STATEMENTS,
    TOPIC_KINDS,
    Case,
    action_lines,
    alert_lines,
    aside,
    followed,
    gap_lines,
    how_linked,
    is_about,
    looked_at,
    pods,
    pointer,
    runbook,
    section,
    value_lines,
)

MAX_ACTIONS = 3


def answer(case: Case) -> list[str]:
    """The lines of the answer, each with its line end."""
    stated = _in_asked_order(case)
    told = (
        stated[:1]
        if stated and (stated[0].may_be_cause or stated[0].cited.finding.kind in case.kinds)
        else []
    )
    lines = _headline(case, told)
    lines += pods(case) if Topic.PODS in case.focus.topics else []
    shown = alert_lines(case.near_alerts, case.alerts_call)
    shown += value_lines(case.picture, [alert.name for alert in case.near_alerts])
    shown += statements(case, told)
    lines += section("What the evidence shows", shown)
    if not case.focus.narrow:
        lines += how_linked(case) + aside(case)
    lines += runbook(case, told)
    lines += section("Next", action_lines(case)[:MAX_ACTIONS])
    lines += section("Evidence gaps", gap_lines(case))
    return _ended(lines)


def _headline(case: Case, told: Sequence[Placed]) -> list[str]:
    focus = case.focus
    asked = ", ".join(dict.fromkeys(code(owner_of(subject)) for subject in focus.subjects))
    about = f" about {asked}" if asked else ""
    carried = [f"(Taken to be about {asked}, as in the earlier turns.)", ""] if focus.carried else []
    if told and told[0].may_be_cause:
        return pointer(case, told[0]) + carried
    if told:
        return [f"**Found{about}:** {told[0].cited.statement}.", "", *carried]
    seen = [call.cite for call in case.calls if not call.failed and not call.empty]
    where = f" ({' '.join(seen[:MAX_GAPS])})" if seen else ""
    if focus.unknown and not any(placed.standing is Standing.OWN for placed in case.picture.placed):
        return [f"**No evidence on {asked}:** nothing that was looked at goes by that name{where}.", ""]
    if Topic.ALERTS in focus.topics and case.alerts_call is not None and not case.alerts_call.failed:
        number = len(case.near_alerts)
        firing = (
            f"{number} alert{'s are' if number != 1 else ' is'} firing" if number else "No alert is firing"
        )
        return [f"**{firing}{about}** {case.alerts_call.cite}.", "", *carried]
    if asked and not any(is_about(placed) for placed in case.picture.placed):
        return [f"**No fault of {asked} is shown** by what was looked at{where}.", "", *carried]
    return [f"**No cause is shown{about}** by what was looked at{where}.", "", *carried]


def statements(case: Case, told: Sequence[Placed]) -> list[str]:
    """The findings but for those already ``told`` and the runbooks', the weightiest first."""
    after = followed(case, told[0]) if told else None
    alerts = {alert.name for alert in case.near_alerts}
    rest = [
        placed
        for placed in _in_asked_order(case)
        if placed not in told
        and placed is not after
        and placed.cited.finding.kind is not Kind.RUNBOOK
        and placed.cited.finding.alert not in alerts
        and (not case.focus.narrow or placed.cited.finding.kind in case.kinds)
    ]
    return [f"- {placed.cited.statement}." for placed in rest[:MAX_STATEMENTS]]


def _in_asked_order(case: Case) -> list[Placed]:
    """What may be stated, with the kinds of evidence that the question asks for in front."""
    stated = [placed for placed in case.picture.placed if _worth_saying(case, placed)]
    return sorted(stated, key=lambda placed: not _asked_for(case, placed))


def _asked_for(case: Case, placed: Placed) -> bool:
    finding = placed.cited.finding
    if Topic.PODS in case.focus.topics:
        return owner_of(finding.subject) != finding.subject and placed.weight >= ranking.CAUSE_FROM
    return finding.kind in case.kinds


def _worth_saying(case: Case, placed: Placed) -> bool:
    """A clean bill of health is worth a line when it was asked for, or when nothing else is known."""
    if placed.standing is Standing.OTHER:
        return False
    if placed.cited.finding.role is not Role.CLEAR:
        return True
    asked = placed.cited.finding.kind in case.kinds
    return placed.standing is Standing.OWN and (asked or not case.picture.causes)


def answers_topic(focus: Focus, known: Picture) -> bool:
    """Whether the kinds of evidence that the question asks for by name were found, of the right subject."""
    kinds = {kind for topic in focus.topics for kind in TOPIC_KINDS.get(topic, ())}
    return any(
        placed.cited.finding.kind in kinds and placed.standing is not Standing.OTHER
        for placed in known.placed
    )


def exhausted(case: Case) -> list[str]:
    """The answer when nothing was found: what was looked at, and nothing else."""
    looked = len(case.calls)
    lines = [f"**Nothing was found on {code(case.focus.question, 120)}.**", ""]
    lines += [f"{looked} lookup{'s' * (looked != 1)} showed nothing about it.", ""]
    if case.focus.unknown:
        lines += [f"Nothing that was looked at goes by the name {code(case.focus.subjects[0])}.", ""]
    shown = alert_lines(case.focus.alerts, case.alerts_call) if case.focus.operational else []
    lines += section("What was looked at", [*shown, *looked_at(case.calls)[:MAX_STATEMENTS]])
    lines += section("Evidence gaps", gap_lines(case))
    return _ended(lines)


def nothing_to_look_at(question: str, tools: Sequence[str]) -> list[str]:
    """The answer to a question that is about nothing that can be looked at here."""
    names = ", ".join(code(tool) for tool in tools[:MAX_STATEMENTS])
    more = f" and {len(tools) - MAX_STATEMENTS} more" if len(tools) > MAX_STATEMENTS else ""
    able = f"I can look at: {names}{more}." if tools else "No evidence source is configured."
    return _ended(
        [
            f"I have no evidence on {code(question, 120)}: it names no service, alert or symptom that I can look at, "
            "so nothing was looked up.",
            "",
            f"I answer from evidence of the running system only. {able}",
        ]
    )


def _ended(lines: Sequence[str]) -> list[str]:
    kept = list(lines)
    while kept and not kept[-1]:
        kept.pop()
    return [line + "\n" for line in kept]
