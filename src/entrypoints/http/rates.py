"""How often a caller may ask: a bucket of tokens each."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from attrs import define, field

CAPACITY = 10_000
"""The most callers that are remembered at once: about 2 MB."""

_SECOND = 1_000_000_000


@define
class Rates:
    """``burst`` requests at once for each caller, then ``per_second``.

    A bucket is kept as one number, the moment at which it will be full again. Full ones are forgotten, and of more
    than ``CAPACITY`` the one that was asked for longest ago: who floods stays known. Moments are whole nanoseconds
    of a clock that never goes back, so that a caller who waits as long as he was told is let in.
    """

    per_second: float
    burst: int
    clock: Callable[[], int] = time.monotonic_ns
    _full_at: OrderedDict[str, int] = field(factory=OrderedDict, init=False)

    def take(self, caller: str) -> int:
        """Take a token and give 0; if there is none, take nothing and give the whole seconds to wait, 1 or more."""
        now, wait = self.clock(), self.wait(caller)
        full_at = max(self._full_at.get(caller, now), now)
        self._full_at[caller] = full_at if wait else full_at + self._interval
        self._full_at.move_to_end(caller)
        self._forget(now)
        return wait

    def wait(self, caller: str) -> int:
        """The whole seconds until this caller's bucket holds a token; 0 when it does."""
        now = self.clock()
        missing = self._full_at.get(caller, now) - now - (self.burst - 1) * self._interval
        return max(0, -(-missing // _SECOND))

    @property
    def _interval(self) -> int:
        return round(_SECOND / self.per_second)

    def _forget(self, now: int) -> None:
        while self._full_at:
            caller, full_at = next(iter(self._full_at.items()))
            if full_at > now and len(self._full_at) <= CAPACITY:
                return
            del self._full_at[caller]
