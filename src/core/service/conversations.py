"""Keeping conversations: forgetting one's context, which keeps its history, and erasing all of it."""

from __future__ import annotations

from attrs import frozen

from casenotes.core.errors import SessionNotFound
from casenotes.core.service.executions import Executions
from casenotes.core.service.reading import Reading
from casenotes.core.views import Erasure
from casenotes.ports.context import ContextStore
from casenotes.ports.ledger import Ledger


@frozen
class Conversations:
    """What is done to a whole session."""

    ledger: Ledger
    context: ContextStore
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
            erasure = await work.erase(session_id)
            if erasure is None:
                raise SessionNotFound(session_id)
            await work.commit()
        # A run that ended between the two has added its pair again.
        await self.executions.erased(session_id)
        await self.context.clear(session_id)
        return erasure
