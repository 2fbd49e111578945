"""Keeping conversations: forgetting one's context, which keeps its history, and erasing all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta

from attrs import frozen

from casenotes.core.errors import SessionNotFound
from casenotes.core.service.executions import Executions
from casenotes.core.service.reading import Reading
from casenotes.core.views import Erasure, Pruning
from casenotes.ports.ambient import Clock
from casenotes.ports.context import ContextStore
from casenotes.ports.ledger import Ledger

_BATCH = 100
"""Idle sessions that are looked up at a time."""


@frozen
class Conversations:
    """What is done to a whole session."""

    ledger: Ledger
    context: ContextStore
    clock: Clock
    reading: Reading
    executions: Executions

    async def clear(self, session_id: str) -> None:
        """Forget the conversation's context; its session and runs stay.

        Raises ``SessionNotFound``, and ``ContextUnavailable`` when it could not be forgotten.
        """
        await self.reading.session(session_id)
        await self.context.clear(session_id)

    async def erase(self, session_id: str) -> Erasure:
        """Remove the session everywhere, and end its runs that are executed here.

        Raises ``SessionNotFound``; ``ContextUnavailable`` before anything is removed from the ledger.
        """
        await self.executions.erased(session_id)
        await self.context.clear(session_id)
        async with self.ledger.work() as work:
            erasure = await work.erase(session_id, at=self.clock())
            if erasure is None:
                raise SessionNotFound(session_id)
            await work.commit()
        # A run that ended between the two has added its pair again.
        await self.executions.erased(session_id)
        await self.context.clear(session_id)
        return erasure

    async def prune(self, idle: timedelta) -> AsyncIterator[Erasure]:
        """Remove the sessions that were last active longer ago than this, the longest idle first, each whole.

        Each goes in a transaction of its own, so that nobody waits for more than one of them, and is given once it
        is gone. A session that somebody uses meanwhile, and one with a run that is running, stays. Raises
        ``ContextUnavailable``; those given before stay removed.
        """
        since = self.clock() - idle
        passed: set[str] = set()
        while sessions := [name for name in await self._idle(since) if name not in passed]:
            for session_id in sessions:
                passed.add(session_id)
                async with self.ledger.work() as work:
                    erasure = await work.erase(session_id, at=self.clock(), idle_since=since)
                    await work.commit()
                if erasure is not None:
                    await self.context.clear(session_id)
                    yield erasure

    async def pruned(self, idle: timedelta) -> Pruning:
        """``prune`` to its end, and how much that removed."""
        removed = Pruning()
        async for erasure in self.prune(idle):
            removed = removed.plus(erasure)
        return removed

    async def _idle(self, since: datetime) -> Sequence[str]:
        async with self.ledger.view() as view:
            return await view.sessions.idle(since=since, limit=_BATCH)
