"""Comparing two baselines: every drift, and whether it is better, worse, or expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from attrs import evolve, frozen

from casenotes.core.baseline.expectations import Expectation
from casenotes.core.baseline.metrics import METRICS
from casenotes.core.baseline.report import BaselineReport, IncidentResult, InvalidBaseline, Judged
from casenotes.core.text import Json, JsonObject


class Verdict(StrEnum):
    """What to think of a drift."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    EXPECTED = "expected"


@frozen
class Drift:
    """One figure of one incident that differs. ``reason``: why it was expected, if it was."""

    incident: str
    metric: str
    old: Json
    new: Json
    improved: bool
    reason: str | None = None

    @property
    def verdict(self) -> Verdict:
        if self.reason is not None:
            return Verdict.EXPECTED
        return Verdict.IMPROVED if self.improved else Verdict.REGRESSED

    def as_json(self) -> JsonObject:
        return {
            "incident": self.incident,
            "metric": self.metric,
            "old": self.old,
            "new": self.new,
            "verdict": self.verdict,
            "reason": self.reason,
        }


@frozen
class Comparison:
    """What two baselines differ in. ``marks``: incident -> what of its pack differs, evidence, question or facts.

    ``settings``: name -> old and new value, the version among them. ``stale`` expectations did not come about.
    """

    compared: int
    drifts: tuple[Drift, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    marks: dict[str, tuple[str, ...]]
    settings: dict[str, tuple[Json, Json]]
    stale: tuple[Expectation, ...] = ()

    def of(self, verdict: Verdict) -> list[Drift]:
        return [drift for drift in self.drifts if drift.verdict is verdict]

    @property
    def is_clean(self) -> bool:
        """No regression but expected ones."""
        return not self.of(Verdict.REGRESSED)

    def as_json(self) -> JsonObject:
        return {
            "clean": self.is_clean,
            "compared": self.compared,
            "counts": {str(verdict): len(self.of(verdict)) for verdict in Verdict},
            "drifts": [drift.as_json() for drift in self.drifts],
            "added": list(self.added),
            "removed": list(self.removed),
            "changed": {name: list(marks) for name, marks in self.marks.items()},
            "settings": {name: {"old": old, "new": new} for name, (old, new) in self.settings.items()},
            "staleExpectations": [one.as_json() for one in self.stale],
        }


def compare(old: BaselineReport, new: BaselineReport, expected: Sequence[Expectation] = ()) -> Comparison:
    """Every drift from ``old`` to ``new``; of a report with itself, none.

    An incident whose folder cannot be read in one of them has drifted by that. Raises ``InvalidBaseline`` when the
    two share no incident: then there is nothing that the one says of the other.
    """
    before, after = old.by_id, new.by_id
    lost = {one.id: one for one in old.incidents if _is_unreadable(one, new) and one.id not in after}
    found = {one.id: one for one in new.incidents if _is_unreadable(one, old) and one.id not in before}
    shared = sorted(before.keys() & after.keys())
    if not shared and not lost and not found:
        raise InvalidBaseline("the two files share no incident: they are baselines of different suites")
    drifts = [drift for name in shared for drift in _drifts(before[name], after[name])]
    drifts += [Drift(name, "readable", True, False, improved=False) for name in lost]
    drifts += [Drift(name, "readable", False, True, improved=True) for name in found]
    explained = tuple(_explained(drift, expected) for drift in sorted(drifts, key=lambda one: one.incident))
    return Comparison(
        compared=len(shared),
        drifts=explained,
        added=tuple(sorted(after.keys() - before.keys() - found.keys())),
        removed=tuple(sorted(before.keys() - after.keys() - lost.keys())),
        marks={name: marks for name in shared if (marks := tuple(_marks(before[name], after[name])))},
        settings=_settings(old, new),
        stale=tuple(one for one in expected if not any(_meets(drift, one) for drift in drifts)),
    )


def _is_unreadable(one: IncidentResult, report: BaselineReport) -> bool:
    return any(other.folder == one.folder for other in report.unreadable)


def _drifts(old: IncidentResult, new: IncidentResult) -> Iterator[Drift]:
    yield from _statements("fact", old.facts, new.facts, good=True, incident=old.id)
    yield from _statements("decoy", old.decoys, new.decoys, good=False, incident=old.id)
    for name, held in old.measures.rules.items():
        now = new.measures.rules.get(name, held)
        if now != held:
            yield Drift(old.id, f"rule: {name}", _held(held), _held(now), improved=now)
    for metric in METRICS:
        if metric.drifts(old, new):
            yield Drift(old.id, metric.name, metric.shown(old), metric.shown(new), metric.improves(old, new))


def _statements(
    kind: str, old: Sequence[Judged], new: Sequence[Judged], *, good: bool, incident: str
) -> Iterator[Drift]:
    """What both suites judge by, and only one of the answers states."""
    now = {one.text: one.stated for one in new}
    for one in old:
        stated = now.get(one.text, one.stated)
        if stated != one.stated:
            yield Drift(
                incident, f"{kind}: {one.text}", _said(one.stated), _said(stated), improved=stated is good
            )


def _said(stated: bool) -> str:
    return "stated" if stated else "not stated"


def _held(held: bool) -> str:
    return "holds" if held else "broken"


def _marks(old: IncidentResult, new: IncidentResult) -> Iterator[str]:
    if old.question != new.question:
        yield "question changed"
    if old.flow != new.flow:
        yield "flow changed"
    for kind, before, after in (("facts", old.facts, new.facts), ("decoys", old.decoys, new.decoys)):
        if [(one.text, one.terms) for one in before] != [(one.text, one.terms) for one in after]:
            yield f"{kind} changed"
    parts = sorted(
        name
        for name in old.evidence.keys() | new.evidence.keys()
        if old.evidence.get(name) != new.evidence.get(name)
    )
    for name in parts:
        change = "changed" if name in old.evidence and name in new.evidence else None
        yield f"evidence {name} {change or ('added' if name in new.evidence else 'removed')}"


def _settings(old: BaselineReport, new: BaselineReport) -> dict[str, tuple[Json, Json]]:
    before, after = ({"casenotes": one.version, **one.settings} for one in (old, new))
    return {
        name: (before.get(name), after.get(name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    }


def _explained(drift: Drift, expected: Sequence[Expectation]) -> Drift:
    reason = next((one.reason for one in expected if _meets(drift, one)), None)
    return evolve(drift, reason=reason)


def _meets(drift: Drift, expectation: Expectation) -> bool:
    return (
        expectation.incident == drift.incident
        and expectation.metric == drift.metric
        and expectation.improved is drift.improved
    )
