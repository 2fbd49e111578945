"""Group commit: who arrives while others are being written is written with the next of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from attrs import define, field, frozen

from casenotes.core.errors import LedgerUnavailable

Entry = TypeVar("Entry")
Result = TypeVar("Result")


@frozen
class Failed:
    """What became of one entry, when that is an error of its own."""

    reason: BaseException


@define(eq=False)
class Group(Generic[Entry, Result]):
    """Writes entries together.

    ``write`` stores some entries durably and tells what became of each, in their order; what it raises befell all of
    them. At most ``abreast`` such writes are under way at a time, each of at most ``most`` entries: an entry that
    finds one of them free goes at once and alone, and others that come meanwhile go together.
    """

    write: Callable[[Sequence[Entry]], Awaitable[Sequence[Result | Failed]]]
    abreast: int = 1
    most: int = 256
    _waiting: list[tuple[Entry, asyncio.Future[Result]]] = field(factory=list, init=False)
    _writing: int = field(default=0, init=False)
    _writers: set[asyncio.Task[None]] = field(factory=set, init=False)

    async def put(self, entry: Entry) -> Result:
        """Store an entry; return when it is durable."""
        if self._writing < self.abreast:
            return await self._put_at_once(entry)
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, future))
        return await future

    async def done(self) -> None:
        """Return when nothing is being written."""
        while self._writers:
            await asyncio.wait(set(self._writers))

    async def _put_at_once(self, entry: Entry) -> Result:
        self._writing += 1
        try:
            [outcome] = await self.write([entry])
        finally:
            self._leave()
        if isinstance(outcome, Failed):
            raise outcome.reason
        return outcome

    def _leave(self) -> None:
        """Go, or let a task go on for those who have come meanwhile."""
        if not self._waiting:
            self._writing -= 1
            return
        writer = asyncio.create_task(self._write(), name="casenotes group commit")
        self._writers.add(writer)
        writer.add_done_callback(self._writers.discard)

    async def _write(self) -> None:
        try:
            await self._write_all()
        finally:
            # In the same breath as the last look at who waits: whoever comes next starts a writer of its own.
            self._writing -= 1

    async def _write_all(self) -> None:
        while self._waiting:
            together, self._waiting = self._waiting[: self.most], self._waiting[self.most :]
            try:
                outcomes = await self.write([entry for entry, _ in together])
            except BaseException as fault:
                for _, future in together:
                    if not isinstance(fault, Exception):
                        future.cancel()
                    elif not future.done():
                        future.set_exception(_one_of_its_own(fault))
                if not isinstance(fault, Exception):
                    raise
                continue
            for (_, future), outcome in zip(together, outcomes, strict=True):
                if future.done():
                    continue
                if isinstance(outcome, Failed):
                    future.set_exception(outcome.reason)
                else:
                    future.set_result(outcome)


def _one_of_its_own(fault: Exception) -> Exception:
    """The same error once more: one object is not raised in several places at once."""
    return LedgerUnavailable(str(fault)) if isinstance(fault, LedgerUnavailable) else fault
