"""Turns at what there is only so much of, such as connections."""

from __future__ import annotations

import asyncio

from attrs import define, field

from casenotes.core.errors import LedgerUnavailable


@define(eq=False)
class Turns:
    """A semaphore that gives ``at_once`` turns at a time, in the order asked for, to the tasks of one event loop.

    One that is not free within ``wait_seconds`` is not waited for any longer: ``busy`` says so, to a caller.
    """

    at_once: int
    wait_seconds: float
    busy: str
    out: int = field(default=0, init=False)
    """How many are taken and not given back."""
    _free: asyncio.Semaphore = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._free = asyncio.Semaphore(self.at_once)

    async def take(self) -> None:
        """Have a turn, which is to be given back. Raises ``LedgerUnavailable`` when none becomes free in time."""
        if self._free.locked():
            await self._wait()
        else:
            await self._free.acquire()  # at once: nearly every turn is had so, without the cost of a timer
        self.out += 1

    def give_back(self) -> None:
        """End a turn; whoever has waited longest is next."""
        self.out -= 1
        self._free.release()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self.wait_seconds):
                await self._free.acquire()
        except TimeoutError:
            raise LedgerUnavailable(self.busy) from None
