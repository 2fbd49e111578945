"""A conversation store that answers in time or is unavailable: nobody waits for it longer than that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from attrs import frozen

from casenotes.core.errors import ContextUnavailable
from casenotes.core.model import MessagePair
from casenotes.ports.context import ContextStore


@frozen
class BoundedContext:
    """Any ``ContextStore``, each call of which takes at most ``limit`` and raises ``ContextUnavailable`` after."""

    store: ContextStore
    limit: timedelta

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        deadline = asyncio.timeout(self.limit.total_seconds())
        try:
            async with deadline:
                yield
        except TimeoutError:
            raise ContextUnavailable("the conversation store did not answer in time") from None

    async def recall(self, session_id: str) -> Sequence[MessagePair]:
        async with self._in_time():
            return await self.store.recall(session_id)

    async def append(self, session_id: str, pair: MessagePair) -> None:
        async with self._in_time():
            await self.store.append(session_id, pair)

    async def clear(self, session_id: str) -> None:
        async with self._in_time():
            await self.store.clear(session_id)

    async def ping(self) -> None:
        async with self._in_time():
            await self.store.ping()

    async def close(self) -> None:
        await self.store.close()
