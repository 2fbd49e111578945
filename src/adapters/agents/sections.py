"""The parts that answers and reports are made of. Every line that states something cites its call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from attrs import frozen

from casenotes.adapters.agents.alerts import Alert
from casenotes.adapters.agents.findings import ranking
from casenotes.adapters.agents.findings.model import Kind, Role, code, moment
from casenotes.adapters.agents.findings.names import mentions, owner_of, same_thing
from casenotes.adapters.agents.focus import Focus, Topic, concerns
from casenotes.adapters.agents.linking import Picture, Placed, Standing
from casenotes.adapters.agents.looking import Call, Cited, describe

MAX_STATEMENTS = 8
MAX_ASIDE = 3
MAX_GAPS = 6
MAX_RUNBOOK = 4

TOPIC_KINDS = {
    Topic.LOGS: (Kind.LOG,),
    Topic.METRICS: (Kind.METRIC, Kind.VALUE),
    Topic.RUNBOOK: (Kind.RUNBOOK,),
    Topic.EVENTS: (Kind.EVENT,),
    Topic.CHANGES: (Kind.CHANGE,),
}
"""The findings that a topic asks for."""


@frozen
class Case:
    """What an answer is composed from.

    ``alerts`` are all that fire and ``alerts_call`` the call that showed them; ``left_out`` counts lookups that
    were promising and not made.
    """

    focus: Focus
    picture: Picture
    calls: tuple[Call, ...]
    alerts: tuple[Alert, ...] = ()
    alerts_call: Call | None = None
    left_out: int = 0

    @property
    def near_alerts(self) -> tuple[Alert, ...]:
        """The alerts in focus, then those for what the subject's errors lead to."""
        linked = [alert for alert in self.alerts if concerns(alert, self.picture.links)]
        return tuple(dict.fromkeys([*self.focus.alerts, *linked]))

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of finding that the question asks for by name."""
        return frozenset(kind for topic in self.focus.topics for kind in TOPIC_KINDS.get(topic, ()))


def is_about(placed: Placed) -> bool:
    """Whether a finding says something about what was asked, rather than of something else or of its health."""
    return placed.standing is not Standing.OTHER and placed.cited.finding.role is not Role.CLEAR


def alert_lines(alerts: Iterable[Alert], call: Call | None) -> list[str]:
    """One line for each alert; none without the call that showed them."""
    if call is None:
        return []
    lines = []
    for alert in alerts:
        since = f" since {moment(alert.since)}" if alert.since else ""
        about = f" for {', '.join(code(subject) for subject in alert.subjects[:3])}" if alert.subjects else ""
        said = f": {code(alert.description)}" if alert.description else ""
        lines.append(f"- Alert {code(alert.name)} is {alert.state}{about}{since}{said} {call.cite}.")
    return list(dict.fromkeys(lines))[:MAX_STATEMENTS]


def value_lines(picture: Picture, names: Iterable[str]) -> list[str]:
    """What the own expressions of these alerts give now."""
    wanted = frozenset(names)
    return [
        f"- {placed.cited.statement}." for placed in picture.placed if placed.cited.finding.alert in wanted
    ][:MAX_STATEMENTS]


def pointer(case: Case, best: Placed) -> list[str]:
    """The finding that is put forward as the cause, and, for a change, what followed it."""
    lines = [f"**The evidence points to this:** {best.cited.statement}{_ahead(best, case.picture.onset)}."]
    after = followed(case, best)
    lines += ["", f"What followed: {after.cited.statement}."] if after is not None else []
    return [*lines, ""]


def followed(case: Case, best: Placed) -> Placed | None:
    """The weightiest fault of the thing that was changed, when the best finding is a change."""
    finding = best.cited.finding
    if finding.kind is not Kind.CHANGE:
        return None
    faults = (
        placed
        for placed in case.picture.causes
        if placed.cited.finding.kind in (Kind.LOG, Kind.EVENT, Kind.CONTAINER)
        and same_thing(placed.cited.finding.subject, finding.subject)
    )
    return next(faults, None)


def _ahead(best: Placed, onset: datetime | None) -> str:
    since = best.cited.finding.since
    if best.cited.finding.kind is not Kind.CHANGE or since is None or onset is None or since > onset:
        return ""
    minutes = round((onset - since).total_seconds() / 60)
    return f", {minutes or 'less than one'} min before the first sign of trouble ({moment(onset)})"


def how_linked(case: Case) -> list[str]:
    """Which words led from the subject to something else."""
    used = [
        placed.cited.finding.subject for placed in case.picture.placed if placed.standing is Standing.LINKED
    ]
    lines: dict[str, str] = {}
    for name, cited in case.picture.links.items():
        if any(same_thing(name, subject) for subject in used):
            lines.setdefault(owner_of(name), f"- {code(owner_of(name))} is named by: {cited.statement}.")
    return section("How this was reached", list(lines.values())[:MAX_ASIDE])


def aside(case: Case) -> list[str]:
    """What looks like a fault of something else, and why it is not put forward."""
    best: dict[str, Placed] = {}
    for placed in case.picture.placed:
        finding = placed.cited.finding
        blamed = finding.role is Role.CAUSE and finding.weight >= ranking.CAUSE_FROM
        if placed.standing is Standing.OTHER and blamed:
            best.setdefault(owner_of(finding.subject), placed)
    lines = [f"- {placed.cited.statement}. {_why_not(case, placed.cited)}" for placed in best.values()][
        :MAX_ASIDE
    ]
    return section("Also seen, and not taken for the cause", lines)


def _why_not(case: Case, cited: Cited) -> str:
    subject, since, onset = cited.finding.subject, cited.finding.since, case.picture.onset
    near = [
        placed.cited for placed in case.picture.placed if placed.standing in (Standing.OWN, Standing.LINKED)
    ]
    speaking = [other for other in near if other.finding.kind is Kind.LOG]
    reasons: list[str] = []
    victims = [name for name in case.focus.subjects if mentions(cited.finding.text, name)]
    if victims:
        reasons.append(f"it names {code(victims[0])} itself, as one that suffers from it would")
    elif speaking:
        whose = ", ".join(dict.fromkeys(code(owner_of(other.finding.subject)) for other in speaking))
        where = " ".join(dict.fromkeys(f"[T{number}]" for other in speaking for number in other.calls[:1]))
        reasons.append(f"no error seen in the log of {whose} names {code(owner_of(subject))} {where}")
    if since is not None and onset is not None:
        minutes = round((since - onset).total_seconds() / 60)
        order = "after" if minutes > 0 else "before"
        if abs(minutes) > 2:
            reasons.append(f"it began {abs(minutes)} min {order} the trouble did ({moment(onset)})")
    clear = [
        placed.cited.statement
        for placed in case.picture.placed
        if placed.cited.finding.role is Role.CLEAR and same_thing(placed.cited.finding.subject, subject)
    ]
    reasons += clear[:2]
    said = "; ".join(reasons) if reasons else f"nothing seen links it to {code(case.focus.subjects[0])}"
    alert = next((alert for alert in case.alerts if concerns(alert, [subject])), None)
    fires = (
        f" Alert {code(alert.name)} fires for it {case.alerts_call.cite}."
        if alert and case.alerts_call
        else ""
    )
    return f"Not taken for the cause: {said}.{fires}"


def runbook(case: Case, told: Sequence[Placed] = ()) -> list[str]:
    """What the runbooks of the alerts say but for what is ``told``, those nearest to the cause first."""
    own = [placed for placed in case.picture.placed if placed not in told and is_own_runbook(case, placed)]
    best = case.picture.causes[0].cited.finding.subject if case.picture.causes else ""
    first = {alert.name.casefold() for alert in case.near_alerts if best and concerns(alert, [best])}
    own.sort(key=lambda placed: placed.cited.finding.subject.casefold() not in first)
    most = len(own) if Topic.RUNBOOK in case.focus.topics else MAX_RUNBOOK
    return section("What the runbook says", [f"- {placed.cited.statement}." for placed in own[:most]])


def pods(case: Case) -> list[str]:
    """The pods that the subject and what it leads to run in, as far as they were seen; those of the cause first."""
    seen: dict[str, str] = {}
    best = case.picture.causes[0].cited.finding.subject if case.picture.causes else ""
    for placed in sorted(
        case.picture.placed, key=lambda each: not same_thing(each.cited.finding.subject, best)
    ):
        name = placed.cited.finding.subject
        if placed.standing in (Standing.OWN, Standing.LINKED) and owner_of(name) != name:
            seen.setdefault(name, f"{code(name)} {placed.cited.citation}")
    return [f"Pods seen: {', '.join(list(seen.values())[:MAX_STATEMENTS])}.", ""] if seen else []


def is_own_runbook(case: Case, placed: Placed) -> bool:
    """Whether a finding is of a runbook for an alert near the question, or of one that names no alert."""
    names = {alert.name.casefold() for alert in case.near_alerts}
    finding = placed.cited.finding
    return finding.kind is Kind.RUNBOOK and finding.subject.casefold() in names | {""}


def action_lines(case: Case) -> list[str]:
    """One line for each thing to do, resting on a finding, the most promising first."""
    seen: dict[str, str] = {}
    for placed in case.picture.causes:
        action = placed.cited.finding.action
        if action:
            seen.setdefault(action, f"- {action[:1].upper()}{action[1:]} {placed.cited.citation}.")
    return list(seen.values())


def gap_lines(case: Case) -> list[str]:
    """What was looked for and not found, what failed, and how many lookups were left out."""
    lines = [
        f"- Not found: {code(describe(call.lookup))} had nothing to show {call.cite}."
        for call in case.calls
        if call.empty and not call.failed
    ][:MAX_GAPS]
    failed = [call for call in case.calls if call.failed]
    lines += [
        f"- Failed: {code(describe(call.lookup))}: {code(call.failed or '', 160)} {call.cite}."
        for call in failed[:MAX_GAPS]
    ]
    if len(failed) > MAX_GAPS:
        rest = failed[MAX_GAPS:]
        lines.append(f"- {len(rest)} more lookups failed: {' '.join(call.cite for call in rest)}.")
    lines += [
        f"- Not whole: {code(describe(call.lookup))}: {call.observation.left_out} {call.cite}."
        for call in case.calls
        if call.observation.left_out
    ][:MAX_GAPS]
    if case.left_out:
        more = f"{case.left_out} more lookup{'s were' if case.left_out != 1 else ' was'} possible"
        lines.append(f"- {more} and not made, to keep the run short.")
    return lines


def section(title: str, lines: Sequence[str]) -> list[str]:
    """A titled list; nothing when there is no line."""
    return [f"**{title}**", "", *lines, ""] if lines else []


def looked_at(calls: Iterable[Call]) -> list[str]:
    """One line for each call that showed something."""
    return [f"- Looked at: {code(describe(call.lookup))} {call.cite}." for call in calls if not call.empty]
