"""Series that left their usual level and came back to it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from attrs import frozen

from casenotes.adapters.agents.findings import ranking


@frozen
class Spike:
    """From when to when a series was away from its usual level, both in seconds, and how far it went."""

    start: float
    back: float
    usual: float
    peak: float


def spike_in(points: Sequence[tuple[float, float]], *, percent: bool = False) -> Spike | None:
    """The largest time away from the usual level that ended; ``None`` without one.

    ``points`` are measured, in order. The usual level is the median of all; a point is away from it by the same
    measures as a level that moved. One point is a blip, and what is away for a third of the time is no spike.
    """
    values = [value for _, value in points]
    if len(values) < ranking.MIN_BASELINE + ranking.MIN_AFTER + 1:
        return None
    usual = median(values)
    spread = 1.4826 * median(abs(value - usual) for value in values)
    away = [_is_away(value, usual, spread, percent) for value in values]
    if away.count(True) * 3 > len(away):
        return None
    runs: list[tuple[int, int]] = []
    start: int | None = None
    for at, is_away in enumerate(away):
        if is_away and start is None:
            start = at
        elif not is_away and start is not None:
            if at - start >= ranking.MIN_AFTER:
                runs.append((start, at))
            start = None
    if not runs:
        return None
    first, after = max(runs, key=lambda run: sum(abs(value - usual) for value in values[run[0] : run[1]]))
    peak = max(values[first:after], key=lambda value: abs(value - usual))
    return Spike(points[first][0], points[after][0], usual, peak)


def _is_away(value: float, usual: float, spread: float, percent: bool) -> bool:
    change = abs(value - usual)
    least = max(spread, ranking.FLOOR_SHARE * max(abs(value), abs(usual)))
    if change == 0 or change < ranking.MIN_SCORE * least or change < ranking.MIN_RELATIVE * abs(usual):
        return False
    return not percent or change >= ranking.MIN_PERCENT_POINTS
