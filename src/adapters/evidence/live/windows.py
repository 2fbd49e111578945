"""The time a lookup looks back over, and the steps it does so in."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from attrs import frozen

from casenotes.core.text import Json, JsonObject

DEFAULT_MINUTES = 60
MAX_MINUTES = 7 * 24 * 60
MAX_POINTS = 11_000
"""Points of one series that Prometheus answers with at the most; it refuses a query for more."""

USUAL_POINTS = 120
"""Points of a range whose step is not given: enough to see a level move, few enough to be read."""


class WrongArgument(Exception):
    """An argument of a lookup is not as it must be; the message is safe to show."""


@frozen
class Window:
    """From when to when, in seconds since the epoch, and in which steps. ``said`` tells what was changed."""

    start: float
    end: float
    step: float
    said: tuple[str, ...] = ()


def window_of(arguments: JsonObject, now: datetime) -> Window:
    """The window that ``minutes``, ``end`` (ISO 8601 with zone) and ``step`` (seconds) ask for.

    Each has a default; a step that would give more points than the server answers with is raised. Raises
    ``WrongArgument``.
    """
    minutes = _number(arguments, "minutes", DEFAULT_MINUTES, MAX_MINUTES)
    end = _time(arguments.get("end"), now)
    usual = max(1.0, math.ceil(minutes * 60 / USUAL_POINTS))
    step = _number(arguments, "step", usual, MAX_MINUTES * 60)
    least = math.ceil(minutes * 60 / (MAX_POINTS - 1))
    said = (f"the step was raised from {step:g} s to {least} s",) if step < least else ()
    step = max(step, least)
    # steps are counted from the start: the last one must be the end, the freshest value
    start = end - math.floor(minutes * 60 / step) * step
    return Window(start, end, step, said)


def minutes_since(began: str, now: datetime) -> int:
    """How long to look back to see what was before: half an hour before it began, and more the older it is."""
    try:
        began_at = datetime.fromisoformat(began)
        age = (now - began_at).total_seconds() / 60 if began_at.tzinfo else 0.0
    except (ValueError, OverflowError):
        age = 0.0
    wanted = DEFAULT_MINUTES if age <= DEFAULT_MINUTES // 2 else math.ceil(age * 1.5 / 30) * 30
    return min(max(wanted, DEFAULT_MINUTES), 24 * 60)


def _number(arguments: JsonObject, name: str, default: float, most: float) -> float:
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise WrongArgument(f"{name} must be a number above 0 and at most {most:g}")
    return float(value)


def _time(value: Json, now: datetime) -> float:
    if value is None:
        return now.timestamp()
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
        if time is None or time.tzinfo is None:
            raise ValueError
        return time.astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        raise WrongArgument("end must be a time in ISO 8601 with its zone") from None
