"""The conversation store in memory: gone with the process."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from attrs import frozen

from casenotes.adapters.context.retention import (
    DEFAULT_TTL_SECONDS,
    DEFAULT_WINDOW,
    PURGE_AT_ONCE,
    Retention,
    now_in_utc,
)
from casenotes.core.errors import ContextUnavailable
from casenotes.core.model import MessagePair
from casenotes.ports.ambient import Clock


@frozen
class _Conversation:
    pairs: tuple[MessagePair, ...]
    expires_at: datetime


class MemoryContextStore:
    """``casenotes.ports.context.ContextStore``. No method waits, so each is atomic among the tasks of a loop."""

    def __init__(
        self, window: int = DEFAULT_WINDOW, ttl: float = DEFAULT_TTL_SECONDS, clock: Clock = now_in_utc
    ) -> None:
        self._retention = Retention(window, ttl, clock)
        self._conversations: dict[str, _Conversation] = {}  # the one appended to last stands last
        self._closed = False

    async def recall(self, session_id: str) -> Sequence[MessagePair]:
        await self.ping()
        return self._remembered(session_id)

    async def append(self, session_id: str, pair: MessagePair) -> None:
        await self.ping()
        pairs = (*self._remembered(session_id), pair)[-self._retention.window :]
        self._conversations.pop(session_id, None)
        self._purge()
        self._conversations[session_id] = _Conversation(pairs, self._retention.expiry())

    async def clear(self, session_id: str) -> None:
        await self.ping()
        self._conversations.pop(session_id, None)

    async def ping(self) -> None:
        if self._closed:
            raise ContextUnavailable("the conversation store is closed")

    async def close(self) -> None:
        self._closed = True
        self._conversations.clear()

    def _remembered(self, session_id: str) -> tuple[MessagePair, ...]:
        known = self._conversations.get(session_id)
        return known.pairs if known is not None and known.expires_at > self._retention.now() else ()

    def _purge(self) -> None:
        now = self._retention.now()
        oldest = islice(self._conversations.items(), PURGE_AT_ONCE)
        for session_id in [name for name, known in oldest if known.expires_at <= now]:
            del self._conversations[session_id]
