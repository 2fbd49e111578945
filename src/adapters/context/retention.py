"""How much of a conversation is remembered, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from attrs import field, frozen, validators

from casenotes.ports.ambient import Clock

DEFAULT_WINDOW: Final = 6
DEFAULT_TTL_SECONDS: Final = 24 * 60 * 60
PURGE_AT_ONCE: Final = 100
"""The most expired conversations that one append removes, so that no caller pays for all of them."""


def now_in_utc() -> datetime:
    """The time now: the ``Clock`` of a store that was given none."""
    return datetime.now(UTC)


@frozen
class Retention:
    """The window, in pairs, and the time to live, in seconds since the latest append."""

    window: int = field(validator=validators.ge(1))
    ttl: float = field(validator=validators.gt(0))
    clock: Clock

    def now(self) -> datetime:
        return self.clock()

    def expiry(self) -> datetime:
        """Until when a conversation that is appended to now is remembered."""
        return self.clock() + timedelta(seconds=self.ttl)
