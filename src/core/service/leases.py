"""Leases: a living process keeps those of its runs, and ends the runs of processes that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from datetime import datetime
from typing import Any

from attrs import frozen

from casenotes.core import rules
from casenotes.core.errors import RunNotFound
from casenotes.core.model import ChatSession, DiagnosisRun, RunKey
from casenotes.core.seal import ChainHead
from casenotes.core.service.ending import Outcome, end_run
from casenotes.core.service.recording import Recorder
from casenotes.ports.ledger import UnitOfWork

ORPHANED = "the process that executed the run went away before the run had ended"
_BATCH = 100
_TICKS_PER_LEASE = 3
_LAST_ROUND_SECONDS = 5


@frozen
class LeaseKeeper:
    """Renews the leases of ``running()`` and ends runs whose lease has expired, three times in a lease's period.

    So a run whose owner died ends within two lease periods, and that of a living owner is never touched.
    ``lost`` is told the runs whose lease somebody else has ended.
    """

    recorder: Recorder
    running: Callable[[], frozenset[RunKey]]
    lost: Callable[[Collection[RunKey]], Awaitable[None]]

    async def keep(self) -> None:
        """Renew, and beside it end what has expired, until cancelled: ending others' runs never delays a renewal.

        A round that fails is told to the observer, and the next one tries again. A cancellation lets the round under
        way end by itself, for some seconds: a driver that is interrupted while it connects may go on working.
        """
        async with asyncio.TaskGroup() as loops:
            loops.create_task(self._repeat(self._renew))
            loops.create_task(self._repeat(self._end_expired))

    async def _repeat(self, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        pause = self.recorder.lease.total_seconds() / _TICKS_PER_LEASE
        while True:
            one = asyncio.create_task(act())
            try:
                await asyncio.shield(one)
            except asyncio.CancelledError:
                await asyncio.wait({one}, timeout=_LAST_ROUND_SECONDS)
                one.cancel()
                raise
            except Exception as fault:
                self.recorder.observer.faulted("", None, "keeping leases", fault)
            await asyncio.sleep(pause)

    async def tick(self) -> None:
        """Renew once, then end what has expired."""
        await self._renew()
        await self._end_expired()

    async def _renew(self) -> None:
        mine = self.running()
        if not mine:
            return
        lease = rules.lease_until(self.recorder.owner, self.recorder.clock(), self.recorder.lease)
        async with self.recorder.ledger.work() as work:
            kept = await work.runs.renew(mine, owner=lease.owner, until=lease.expires_at)
            await work.commit()
        gone = (mine - kept) & self.running()
        if gone:
            await self.lost(gone)

    async def _end_expired(self) -> None:
        async with self.recorder.ledger.view() as view:
            expired = await view.runs.expired(now=self.recorder.clock(), limit=_BATCH)
        for run in expired:
            if (run.session_id, run.run_id) not in self.running():
                await self._end(run)

    async def _end(self, run: DiagnosisRun) -> None:
        clock, key = self.recorder.clock, (run.session_id, run.run_id)

        async def end(work: UnitOfWork) -> DiagnosisRun | None:
            now = clock()
            locked = await work.runs.lock_to_end(*key) or await _with_a_session(work, run, now)
            if locked is None or not rules.lease_expired(locked[0], now):
                return None
            return await end_run(work, *locked, _orphaned(now), expires_at=None)

        try:
            ended = await self.recorder.ledger.transact(end)
        except RunNotFound:
            return
        if ended is not None:
            self.recorder.observer.ended(ended)


async def _with_a_session(
    work: UnitOfWork, run: DiagnosisRun, now: datetime
) -> tuple[DiagnosisRun, ChainHead] | None:
    """A run that another program left running, without a session, with one that is made for it; both locked.

    Raises ``RunNotFound`` when the run was erased or ended meanwhile: the session is then undone.
    """
    key = (run.session_id, run.run_id)
    found = await work.runs.get(*key)
    if found is None or not rules.lease_expired(found, now):
        return None
    await work.sessions.ensure(
        ChatSession(run.session_id, created_at=run.created_at, last_active_at=run.created_at)
    )
    locked = await work.runs.lock_to_end(*key)
    if locked is None or not rules.lease_expired(locked[0], now):
        raise RunNotFound(*key)
    return locked


def _orphaned(now: datetime) -> Outcome:
    return lambda run, metrics, _: run.fail(ORPHANED, now, metrics)
