"""Where a verification gets what is stored, as it is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from casenotes.core.verification import StoredRun, StoredSession


class SessionSnapshot(Protocol):
    """All that is stored of one session, as of one moment."""

    @property
    def stored(self) -> StoredSession:
        """The session beside its runs."""
        ...

    def runs(self) -> AsyncIterator[StoredRun]:
        """Each of its runs once, with its rows; a row that cannot be read is named, and hides no other run."""
        ...


class VerificationSource(Protocol):
    """Reads a ledger to verify it. Writes nothing. Every method raises ``LedgerUnavailable``."""

    async def sealed_since(self) -> datetime | None:
        """Since when the ledger makes digests; ``None`` when it does not say, which it should."""
        ...

    def session_ids(self) -> AsyncIterator[str]:
        """Every session id that stands in any row of a session, run, step, tool call or case, once."""
        ...

    def session(self, session_id: str) -> AbstractAsyncContextManager[SessionSnapshot]:
        """A snapshot of one session; of an unknown one it holds nothing."""
        ...

    async def homeless_cases(self) -> Sequence[int]:
        """The numbers of automatic cases that name no session and no run that is there."""
        ...
