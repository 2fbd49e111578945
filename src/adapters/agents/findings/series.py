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
from casenotes.adapters.agents.findings.model import Finding, Kind, Role, code, moment
from casenotes.core.text import Json

Sample: TypeAlias = tuple[float, float]
"""(seconds since the epoch, value)."""

_TOO_LARGE = 1e100
"""No measurement is that large; sums of such numbers are not finite."""

_OWNER_LABELS = ("pod", "service", "deployment", "statefulset", "container", "app", "job", "node", "instance")


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
        _moved(owner, meaning, shift, widest) if shift else _kept(owner, meaning, all_series[owner])
        for owner, shift in shifts.items()
        if shift or any(map(_is_measured, all_series[owner]))
    ]


def _series(answer: Mapping[str, Json]) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    data = answer.get("data")
    result = data.get("result") if isinstance(data, dict) else None
    for item in result if isinstance(result, list) else []:
        match item:
            case {"metric": dict() as labels, "values": list() as values}:
                owner, base = _owner(labels), 2
                while (name := owner) in found:
                    owner, base = f"{_owner(labels)} #{base}", base + 1
                found[name] = [sample for value in values if (sample := _sample(value)) is not None]
    return found


def _owner(labels: Mapping[str, Json]) -> str:
    return next((str(labels[label]) for label in _OWNER_LABELS if labels.get(label)), "")


def _sample(value: Json) -> Sample | None:
    match value:
        case [int() | float() as time, str() | int() | float() as number]:
            try:
                return float(time), float(number)
            except (ValueError, OverflowError):
                return None
    return None


def _moved(owner: str, meaning: Meaning, shift: Shift, widest: float) -> Finding:
    rose = shift.change > 0
    share = abs(shift.change) / widest if widest else 0.0
    return Finding(
        kind=Kind.METRIC,
        role=_role(meaning, rose),
        subject=owner,
        text=_say(owner, meaning, shift),
        weight=_weight(meaning, shift, share),
        since=_time(shift.at),
        action=f"find out why {meaning.words}{_of(owner)} {'rose' if rose else 'fell'}",
    )


def _say(owner: str, meaning: Meaning, shift: Shift) -> str:
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


def _kept(owner: str, meaning: Meaning, samples: Sequence[Sample]) -> Finding:
    usual = median(sample[1] for sample in samples if _is_measured(sample))
    text = f"{meaning.sentence_start}{_of(owner)} kept to its usual level ({meaning.show(usual)})"
    return Finding(Kind.METRIC, Role.CLEAR, owner, text, ranking.CLEAR)


def _of(owner: str) -> str:
    return f" of {code(owner)}" if owner else ""


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
