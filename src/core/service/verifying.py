"""Verifying a ledger: session by session, each in a snapshot of its own, so that writers are never held up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime

from attrs import frozen

from casenotes.core.breaches import Breach, BreachKind
from casenotes.core.errors import SessionNotFound
from casenotes.core.verification import SessionCheck
from casenotes.ports.verification import VerificationSource


@frozen
class Verification:
    """What was verified, and all that was found.

    ``runs`` counts all; ``running`` those that had not ended, ``without_digest`` those that ended before there were
    digests.
    """

    sessions: int
    runs: int
    running: int
    without_digest: int
    breaches: Sequence[Breach]

    @property
    def is_clean(self) -> bool:
        """Whether every promise holds."""
        return not self.breaches


def _ignore(_: Breach) -> None: ...


@frozen
class Verifying:
    """Verifies what a source holds. Reads only. Every method raises ``LedgerUnavailable``."""

    source: VerificationSource

    async def session(self, session_id: str) -> Verification:
        """What was found in one session. Raises ``SessionNotFound``."""
        found = await self._session(session_id, await self.source.sealed_since())
        if found is None:
            raise SessionNotFound(session_id)
        return found

    async def all(self, told: Callable[[Breach], object] = _ignore) -> Verification:
        """What was found in all sessions and beside them. ``told`` gets each breach as soon as it is found."""
        sessions, runs, running, without_digest = 0, 0, 0, 0
        breaches: list[Breach] = []
        async for found in self._everything():
            sessions, runs = sessions + found.sessions, runs + found.runs
            running, without_digest = running + found.running, without_digest + found.without_digest
            breaches += found.breaches
            for breach in found.breaches:
                told(breach)
        return Verification(sessions, runs, running, without_digest, tuple(breaches))

    async def _everything(self) -> AsyncIterator[Verification]:
        sealed_since = await self.source.sealed_since()
        async for session_id in self.source.session_ids():
            # None: it was erased since its id was read.
            if (found := await self._session(session_id, sealed_since)) is not None:
                yield found
        yield Verification(0, 0, 0, 0, await self._beside_sessions(sealed_since))

    async def _beside_sessions(self, sealed_since: datetime | None) -> Sequence[Breach]:
        breaches = [
            Breach(BreachKind.CASE, None, None, f"case {number} was made of a run that is not there")
            for number in await self.source.homeless_cases()
        ]
        if sealed_since is None:
            detail = "the ledger does not say since when it makes digests"
            breaches.append(Breach(BreachKind.UNREADABLE, None, None, detail))
        return breaches

    async def _session(self, session_id: str, sealed_since: datetime | None) -> Verification | None:
        async with self.source.session(session_id) as snapshot:
            check = SessionCheck(snapshot.stored, sealed_since)
            async for run in snapshot.runs():
                check.check(run)
        if not check.runs and not snapshot.stored.is_there:
            return None
        return Verification(1, check.runs, check.running, check.without_digest, check.finish())
