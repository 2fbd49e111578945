"""Context stores that are broken on purpose, each in one way that a real one might be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from casenotes.adapters.context import MemoryContextStore
from casenotes.core.model import MessagePair
from casenotes.ports.contract import HeldClock


class BrokenContext(MemoryContextStore):
    """A sound store, to be spoilt in a subclass."""

    def __init__(self, window: int, ttl: int, clock: HeldClock) -> None:
        super().__init__(window=window, ttl=ttl, clock=clock)
        self.ttl = timedelta(seconds=ttl)
        self.time = clock


class DropsEveryThirdPair(BrokenContext):
    appended = 0

    async def append(self, session_id: str, pair: MessagePair) -> None:
        self.appended += 1
        if self.appended % 3:
            await super().append(session_id, pair)


class KeepsOnePairTooMany(BrokenContext):
    def __init__(self, window: int, ttl: int, clock: HeldClock) -> None:
        super().__init__(window + 1, ttl, clock)


class CountsTheTimeFromTheFirstPair(BrokenContext):
    def __init__(self, window: int, ttl: int, clock: HeldClock) -> None:
        super().__init__(window, ttl, clock)
        self.begun: dict[str, datetime] = {}

    async def append(self, session_id: str, pair: MessagePair) -> None:
        if self.time() >= self.begun.setdefault(session_id, self.time()) + self.ttl:
            await self.clear(session_id)
            self.begun[session_id] = self.time()
        await super().append(session_id, pair)

    async def recall(self, session_id: str) -> Sequence[MessagePair]:
        over = self.time() >= self.begun.get(session_id, self.time()) + self.ttl
        return [] if over else await super().recall(session_id)


class ProlongsWhenRecalled(BrokenContext):
    async def recall(self, session_id: str) -> Sequence[MessagePair]:
        pairs = await super().recall(session_id)
        await self.clear(session_id)
        for pair in pairs:
            await self.append(session_id, pair)
        return pairs


class WritesThePairInTwoHalves(BrokenContext):
    async def append(self, session_id: str, pair: MessagePair) -> None:
        before = await self.recall(session_id)
        await super().append(session_id, MessagePair(pair.question, ""))
        await asyncio.sleep(0)
        await self.clear(session_id)
        for whole in (*before, pair):
            await super().append(session_id, whole)


class ReadsWaitsAndWritesBack(BrokenContext):
    async def append(self, session_id: str, pair: MessagePair) -> None:
        before = await self.recall(session_id)
        await asyncio.sleep(0)
        await self.clear(session_id)
        for whole in (*before, pair):
            await super().append(session_id, whole)


class FoldsTheCaseOfSessionIds(BrokenContext):
    async def append(self, session_id: str, pair: MessagePair) -> None:
        await super().append(session_id.casefold(), pair)

    async def recall(self, session_id: str) -> Sequence[MessagePair]:
        return await super().recall(session_id.casefold())


class ClearsByPrefix(BrokenContext):
    def __init__(self, window: int, ttl: int, clock: HeldClock) -> None:
        super().__init__(window, ttl, clock)
        self.known: set[str] = set()

    async def append(self, session_id: str, pair: MessagePair) -> None:
        self.known.add(session_id)
        await super().append(session_id, pair)

    async def clear(self, session_id: str) -> None:
        for known in self.known:
            if known.startswith(session_id):
                await super().clear(known)
