"""Answers cut down to what the record keeps whole, saying what was cut: findings must rest on what is on record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from casenotes.core.text import Json, JsonObject, json_text

MAX_SERIES = 20
"""Series of a range answer at the most: those that moved most."""

MAX_SAMPLES = 60
"""Series of an instant answer at the most, in the server's order."""

MAX_BYTES = 48 * 1024
"""An answer's JSON text at the most; the record keeps 64 KiB of it whole."""

MIN_POINTS = 12
"""Points of a series at the least before whole series are left out."""


def reduced_matrix(series: Sequence[JsonObject]) -> tuple[list[JsonObject], list[str]]:
    """Series with their points, few enough, and what was left out, in words."""
    kept, said = list(series), []
    if len(kept) > MAX_SERIES:
        by_movement = sorted(range(len(kept)), key=lambda at: -_movement(kept[at]))[:MAX_SERIES]
        said.append(f"{MAX_SERIES} of {len(kept)} series kept, those that moved most")
        kept = [kept[at] for at in sorted(by_movement)]
    most = max((len(_values(item)) for item in kept), default=0)
    coarsest = max(1, most // MIN_POINTS)
    stride = min(max(1, _size(kept) // MAX_BYTES), coarsest)
    thinned = _thinned(kept, stride)
    while _size(thinned) > MAX_BYTES and stride < coarsest:
        stride += 1
        thinned = _thinned(kept, stride)
    if stride > 1:
        said.append(f"one of every {stride} points kept")
    return _fitting(thinned, said)


def reduced_vector(series: Sequence[JsonObject]) -> tuple[list[JsonObject], list[str]]:
    """Series with one value each, few enough, and what was left out, in words."""
    kept, said = list(series), []
    if len(kept) > MAX_SAMPLES:
        said.append(f"{MAX_SAMPLES} of {len(kept)} series kept, the first ones")
        kept = kept[:MAX_SAMPLES]
    return _fitting(kept, said)


def _fitting(series: list[JsonObject], said: list[str]) -> tuple[list[JsonObject], list[str]]:
    kept = series
    while kept and _size(kept) > MAX_BYTES:
        kept = kept[: len(kept) * 3 // 4]
    if len(kept) < len(series):
        said = [*said, f"{len(series) - len(kept)} more series left out for their size"]
    return kept, said


def _movement(item: Mapping[str, Json]) -> float:
    """How far the values lie apart, against their middle."""
    numbers = [number for value in _values(item) if (number := _number(value)) is not None]
    if not numbers:
        return -1.0
    low, high = min(numbers), max(numbers)
    middle = math.fsum(numbers) / len(numbers)
    return (high - low) / (abs(middle) or 1.0)


def _number(value: Json) -> float | None:
    match value:
        case [_, str() | int() | float() as number]:
            try:
                read = float(number)
            except ValueError:
                return None
            return read if abs(read) < 1e100 else None
    return None


def _values(item: Mapping[str, Json]) -> list[Json]:
    values = item.get("values")
    return values if isinstance(values, list) else []


def _thinned(series: Sequence[JsonObject], stride: int) -> list[JsonObject]:
    return (
        [{**item, "values": _every(_values(item), stride)} for item in series] if stride > 1 else list(series)
    )


def _every(values: list[Json], stride: int) -> list[Json]:
    """Each ``stride``-th of them counted from the last, which is the one that matters most."""
    return values[::-1][::stride][::-1]


def _size(series: Sequence[JsonObject]) -> int:
    return len(json_text(list(series)).encode())
