"""A conversation store that answers in time or is unavailable: nobody waits for it longer than that."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from attrs import frozen

from casenotes.core.errors import ContextUnavailable
from casenotes.core.model import MessagePair
from casenotes.ports.context import ContextStore

T = TypeVar("T")


@frozen
class BoundedContext:
    """Any ``ContextStore``, each call of which takes at most ``limit`` and raises ``ContextUnavailable`` after."""

    store: ContextStore
    limit: timedelta

    async def _in_time(self, call: Coroutine[Any, Any, T]) -> T:
        try:
            async with asyncio.timeout(self.limit.total_seconds()):
                return await call
        except TimeoutError:
            raise ContextUnavailable("the conversation store did not answer in time") from None

    async def recall(self, session_id: str) -> Sequence[MessagePair]:
        return await self._in_time(self.store.recall(session_id))

    async def append(self, session_id: str, pair: MessagePair) -> None:
        await self._in_time(self.store.append(session_id, pair))

    async def clear(self, session_id: str) -> None:
        await self._in_time(self.store.clear(session_id))

    async def ping(self) -> None:
        await self._in_time(self.store.ping())

    async def close(self) -> None:
        await self.store.close()
