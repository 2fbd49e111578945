"""When a call is worth repeating, and after which pause."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

ATTEMPTS = 4
"""Requests for one call, the first included."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0


def is_passing(status: int) -> bool:
    """Whether the server may answer otherwise when it is asked again."""
    return status in (408, 409, 425, 429) or (status >= 500 and status != 501)


def pause_before(attempt: int, retry_after: str | None, chance: float) -> float:
    """Seconds to wait after this attempt, counted from 1: what the server asks for, else ever longer ones.

    ``chance``, from 0 to 1, spreads out what runs would else ask again all at once.
    """
    asked = _seconds(retry_after)
    if asked is not None:
        return asked
    pause: float = min(_FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE)
    return pause * (0.5 + chance / 2)


def _seconds(retry_after: str | None) -> float | None:
    """Of a Retry-After header, a number or a date; ``None`` where it is neither."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            until = parsedate_to_datetime(retry_after)
        except ValueError:
            return None
        if until.tzinfo is None:
            until = until.replace(tzinfo=UTC)
        seconds = (until - datetime.now(UTC)).total_seconds()
    return max(seconds, 0.0) if seconds == seconds else None  # NaN is no number of seconds
