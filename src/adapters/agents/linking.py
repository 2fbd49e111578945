"""How findings stand to what was asked: of the subject, of what its errors point at, or of something else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from attrs import evolve, frozen

from casenotes.adapters.agents.findings import ranking
from casenotes.adapters.agents.findings.model import Kind, Role
from casenotes.adapters.agents.findings.names import mentions, plain, same_thing
from casenotes.adapters.agents.focus import Focus
from casenotes.adapters.agents.looking import Cited

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_COMMON = frozenset({"name", "value", "size", "from", "with", "time", "image", "version"})

MAX_HOPS = 2
"""How far from the subject a chain of errors is followed."""


class Standing(StrEnum):
    """Whose finding it is."""

    OWN = "own"
    LINKED = "linked"
    ANYBODY = "anybody"
    OTHER = "other"


@frozen
class Placed:
    """A finding, where it stands, and its weight in this run."""

    cited: Cited
    standing: Standing
    weight: int

    @property
    def may_be_cause(self) -> bool:
        """Whether it may be put forward as the cause."""
        return (
            self.cited.finding.role in (Role.CAUSE, Role.SYMPTOM)
            and self.standing is not Standing.OTHER
            and self.weight >= ranking.CAUSE_FROM
        )


@frozen
class Picture:
    """All findings of a run in their place, the weightiest first; what leads where; when the trouble began.

    ``links`` maps a name to the finding in whose words it was found.
    """

    placed: tuple[Placed, ...]
    links: Mapping[str, Cited]
    onset: datetime | None

    @property
    def causes(self) -> tuple[Placed, ...]:
        """Those that may be put forward as the cause, the best first."""
        return tuple(placed for placed in self.placed if placed.may_be_cause)


def links_from(focus: Focus, found: Sequence[Cited], names: Iterable[str]) -> dict[str, Cited]:
    """The names that the errors of the subjects name, and in turn the errors of those, ``MAX_HOPS`` far."""
    links: dict[str, Cited] = {}
    reached = list(focus.subjects)
    others = [
        name for name in dict.fromkeys(names) if not any(same_thing(name, own) for own in focus.subjects)
    ]
    for _ in range(MAX_HOPS if reached else 0):
        new: dict[str, Cited] = {}
        for cited in found:
            finding = cited.finding
            speaks = finding.kind in (Kind.LOG, Kind.EVENT) and finding.role in (Role.CAUSE, Role.SYMPTOM)
            if not speaks or not any(same_thing(finding.subject, name) for name in reached):
                continue
            for name in others:
                if name not in links and name not in new and mentions(finding.text, name):
                    new[name] = cited
        links.update(new)
        reached = list(new)
    return links


def picture(focus: Focus, found: Sequence[Cited], names: Iterable[str]) -> Picture:
    """The findings in their place."""
    links = links_from(focus, found, names)
    linked = {plain(name) for name in links}
    onset = _onset(focus, found, linked)
    spoken = _spoken(focus, found, linked)
    placed = [_place(focus, cited, linked, onset, spoken) for cited in found]
    return Picture(tuple(sorted(placed, key=lambda item: -item.weight)), links, onset)


def _standing(focus: Focus, subject: str, linked: set[str]) -> Standing:
    if not focus.subjects or not subject:
        return Standing.ANYBODY
    if any(same_thing(subject, own) for own in focus.subjects):
        return Standing.OWN
    return Standing.LINKED if any(same_thing(subject, name) for name in linked) else Standing.OTHER


def _place(
    focus: Focus, cited: Cited, linked: set[str], onset: datetime | None, spoken: frozenset[str]
) -> Placed:
    finding = cited.finding
    standing = _standing(focus, finding.subject, linked)
    weight = finding.weight
    if finding.kind is Kind.CHANGE and onset is not None and finding.since is not None:
        if not _just_before(finding.since, onset):
            return Placed(
                evolve(cited, finding=evolve(finding, role=Role.CONTEXT)), standing, ranking.OLD_CHANGE
            )
        weight = ranking.CHANGE_BEFORE_ONSET
        weight += ranking.NAMED_BY_SYMPTOMS if _is_named(finding.text, spoken) else 0
    if finding.weight == ranking.LIMITS and "CPU limit" in finding.text and focus.speaks_of("throttl"):
        weight = ranking.LIMIT_THAT_THROTTLES
        said = f"{finding.text}; a container is throttled when it would use more CPU than its limit"
        cited = evolve(cited, finding=evolve(finding, role=Role.CAUSE, text=said))
    if finding.role in (Role.CAUSE, Role.SYMPTOM):
        weight += {
            Standing.OWN: ranking.ON_SUBJECT,
            Standing.LINKED: ranking.ON_LINKED,
            Standing.OTHER: ranking.OFF_SUBJECT,
            Standing.ANYBODY: 0,
        }[standing]
    return Placed(cited, standing, weight)


def _just_before(since: datetime, onset: datetime) -> bool:
    return timedelta(0) <= onset - since <= timedelta(minutes=ranking.CHANGE_WINDOW_MINUTES)


def _spoken(focus: Focus, found: Iterable[Cited], linked: set[str]) -> frozenset[str]:
    """The words of the faults of the subject and of what it leads to."""
    return frozenset(
        word
        for cited in found
        if cited.finding.kind is not Kind.CHANGE
        and cited.finding.role in (Role.CAUSE, Role.SYMPTOM)
        and _standing(focus, cited.finding.subject, linked) is not Standing.OTHER
        for word in _words(cited.finding.text)
    )


def _is_named(change: str, spoken: frozenset[str]) -> bool:
    """Whether the faults speak of the very thing that was changed: the first words of a change are its key."""
    return bool(_words(change.split(" of ")[0].split(" was ")[0]) & spoken)


def _words(text: str) -> frozenset[str]:
    return frozenset(
        part.casefold() for part in _WORD.findall(text) if len(part) > 3 and part.casefold() not in _COMMON
    )


def _onset(focus: Focus, found: Iterable[Cited], linked: set[str]) -> datetime | None:
    """When the trouble of the subject began: its own first sign, else the first of its alerts."""
    signs = [
        cited.finding.since
        for cited in found
        if cited.finding.since is not None
        and cited.finding.kind is not Kind.CHANGE
        and cited.finding.role in (Role.CAUSE, Role.SYMPTOM)
        and _standing(focus, cited.finding.subject, linked) in (Standing.OWN, Standing.LINKED)
    ]
    return min([*signs, *(alert.since for alert in focus.alerts if alert.since is not None)], default=None)
