"""Series against their own past: where a level moved, by robust statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import TypeAlias

from attrs import frozen

from casenotes.adapters.agents.findings import metric_names, ranking
from casenotes.adapters.agents.findings.metric_names import Family, Meaning
from casenotes.adapters.agents.findings.model import Finding, Kind, Role, moment
from casenotes.adapters.agents.findings.owners import Owner, labels_of, owners
from casenotes.adapters.agents.findings.spikes import Spike, spike_in
from casenotes.core.text import Json

Sample: TypeAlias = tuple[float, float]
"""(seconds since the epoch, value)."""

_TOO_LARGE = 1e100
"""No measurement is that large; sums of such numbers are not finite."""


@frozen
class Shift:
    """A level that moved, once, and stayed. ``score`` is in robust standard deviations of the time before."""

    at: float
    before: float
    after: float
    peak: float
    score: float

    @property
    def change(self) -> float:
        """How far the level moved; negative when it fell."""
        return self.after - self.before

    @property
    def ratio(self) -> float:
        """How many times the former level the new one is; infinite from a level of zero."""
        if self.before == 0:
            return math.inf if self.after else 1.0
        return self.after / self.before


def shift_in(samples: Sequence[Sample], *, percent: bool = False) -> Shift | None:
    """Where the level of a series moved, or ``None`` when it kept to its past.

    Points that are not finite, or too large to be measured, are passed over. The series is split where the two
    sides lie closest to their own medians; the move counts when it is large against the spread before it and
    against the level before it.
    """
    points = _thin(sorted(sample for sample in samples if _is_measured(sample)))
    values = [value for _, value in points]
    cuts = range(ranking.MIN_BASELINE, len(values) - ranking.MIN_AFTER + 1)
    if not cuts:
        return None
    cut = min(cuts, key=lambda at: _misfit(values[:at]) + _misfit(values[at:]))
    before, after = median(values[:cut]), median(values[cut:])
    spread = 1.4826 * median(abs(value - before) for value in values[:cut])
    change = after - before
    floor = ranking.FLOOR_SHARE * max(abs(before), abs(after))
    score = abs(change) / max(spread, floor) if max(spread, floor) > 0 else 0.0
    if score < ranking.MIN_SCORE or abs(change) < ranking.MIN_RELATIVE * abs(before):
        return None
    if percent and abs(change) < ranking.MIN_PERCENT_POINTS:
        return None
    peak = max(values[cut:]) if change > 0 else min(values[cut:])
    return Shift(points[cut][0], before, after, peak, score)


def _is_measured(sample: Sample) -> bool:
    time, value = sample
    return math.isfinite(time) and math.isfinite(value) and abs(value) < _TOO_LARGE


def _misfit(values: Sequence[float]) -> float:
    middle = median(values)
    return math.fsum(abs(value - middle) for value in values)


def _thin(points: list[Sample]) -> list[Sample]:
    if len(points) <= ranking.MAX_POINTS:
        return points
    size = math.ceil(len(points) / ranking.MAX_POINTS)
    parts = [points[start : start + size] for start in range(0, len(points), size)]
    return [(part[0][0], median(value for _, value in part)) for part in parts]


def series_findings(metric: str, answer: Mapping[str, Json]) -> list[Finding]:
    """What a Prometheus matrix shows: each series that moved, and each that kept its level."""
    meaning = metric_names.meaning_of(metric)
    all_series = _series(answer)
    shifts = {owner: shift_in(samples, percent=meaning.unit == "%") for owner, samples in all_series.items()}
    widest = max((abs(shift.change) for shift in shifts.values() if shift), default=0.0)
    return [
        _moved(owner, meaning, shift, widest) if shift else _stayed(owner, meaning, all_series[owner], widest)
        for owner, shift in shifts.items()
        if shift or any(map(_is_measured, all_series[owner]))
    ]


def _series(answer: Mapping[str, Json]) -> dict[Owner, list[Sample]]:
    data = answer.get("data")
    result = data.get("result") if isinstance(data, dict) else None
    listed = result if isinstance(result, list) else []
    found: dict[Owner, list[Sample]] = {}
    for item, owner in zip(listed, owners([labels_of(item) for item in listed]), strict=True):
        match item:
            case {"metric": dict(), "values": list() as values}:
                found[owner] = [sample for value in values if (sample := _sample(value)) is not None]
    return found


def _sample(value: Json) -> Sample | None:
    match value:
        case [int() | float() as time, str() | int() | float() as number]:
            try:
                return float(time), float(number)
            except (ValueError, OverflowError):
                return None
    return None


def _moved(owner: Owner, meaning: Meaning, shift: Shift, widest: float) -> Finding:
    rose = shift.change > 0
    share = abs(shift.change) / widest if widest else 0.0
    return Finding(
        kind=Kind.METRIC,
        role=_role(meaning, rose),
        subject=owner.subject,
        text=_say(owner, meaning, shift),
        weight=_weight(meaning, shift, share),
        since=_time(shift.at),
        action=f"find out why {meaning.words}{_of(owner)} {'rose' if rose else 'fell'}",
    )


def _say(owner: Owner, meaning: Meaning, shift: Shift) -> str:
    verb = "rose" if shift.change > 0 else "fell"
    text = f"{meaning.sentence_start}{_of(owner)} {verb}"
    text += f" from {meaning.show(shift.before)} to {meaning.show(shift.after)}"
    if shift.change > 0 and math.isfinite(shift.ratio) and shift.before > 0:
        text += f" ({shift.ratio:.3g} times its usual level)"
    if (time := _time(shift.at)) is not None:
        text += f" at {moment(time)}"
    if meaning.show(shift.peak) != meaning.show(shift.after):
        text += f", {'peak' if shift.change > 0 else 'lowest'} {meaning.show(shift.peak)}"
    return text


def _stayed(owner: Owner, meaning: Meaning, samples: Sequence[Sample], widest: float) -> Finding:
    """A series whose level did not move for good: it may have been away and come back."""
    measured = sorted(sample for sample in samples if _is_measured(sample))
    spike = spike_in(_thin(measured), percent=meaning.unit == "%")
    return _kept(owner, meaning, measured) if spike is None else _came_back(owner, meaning, spike, widest)


def _came_back(owner: Owner, meaning: Meaning, spike: Spike, widest: float) -> Finding:
    rose = spike.peak > spike.usual
    away = Shift(spike.start, spike.usual, spike.peak, spike.peak, 0.0)
    share = min(1.0, abs(away.change) / widest) if widest else 1.0
    text = f"{meaning.sentence_start}{_of(owner)} {'rose' if rose else 'fell'}"
    text += f" from {meaning.show(spike.usual)} to {meaning.show(spike.peak)} and came back"
    start, back = _time(spike.start), _time(spike.back)
    text += f", between {moment(start)} and {moment(back)}" if start and back else ""
    weight = max(0, _weight(meaning, away, share) - ranking.OVER)
    action = f"find out what ran while {meaning.words}{_of(owner)} {'was high' if rose else 'was low'}"
    return Finding(Kind.METRIC, _role(meaning, rose), owner.subject, text, weight, start, action)


def _kept(owner: Owner, meaning: Meaning, measured: Sequence[Sample]) -> Finding:
    if len(measured) < ranking.MIN_BASELINE + ranking.MIN_AFTER:
        text = f"{meaning.sentence_start}{_of(owner)} is {meaning.show(measured[-1][1])}"
        text += f"; {len(measured)} point{'s' * (len(measured) != 1)} cannot tell whether that is usual"
        return Finding(Kind.METRIC, Role.CONTEXT, owner.subject, text, ranking.TOO_FEW)
    usual = median(value for _, value in measured)
    text = f"{meaning.sentence_start}{_of(owner)} kept to its usual level ({meaning.show(usual)})"
    return Finding(Kind.METRIC, Role.CLEAR, owner.subject, text, ranking.CLEAR)


def _of(owner: Owner) -> str:
    return f" of {owner.told}" if owner.told else ""


def _time(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _role(meaning: Meaning, rose: bool) -> Role:
    if rose != meaning.bad_when_high:
        return Role.CONTEXT
    return Role.CAUSE if meaning.family is Family.RESOURCE else Role.SYMPTOM


def _weight(meaning: Meaning, shift: Shift, share: float) -> int:
    rose = shift.change > 0
    if rose != meaning.bad_when_high:
        return ranking.EASED
    match meaning.family:
        case Family.RESOURCE:
            away = shift.ratio if rose else 1 / shift.ratio if shift.ratio > 0 else math.inf
            return ranking.resource_weight(away, share)
        case Family.ERRORS:
            return ranking.ERRORS
        case Family.LATENCY:
            return ranking.LATENCY
        case Family.TRAFFIC:
            return ranking.TRAFFIC
        case Family.OTHER:
            return ranking.OTHER_METRIC
