"""Leases: a living process keeps those of its runs, and ends the runs of processes that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from datetime import datetime
from typing import Any

from attrs import frozen

from casenotes.core import rules
from casenotes.core.ending import OnRecord, Outcome, RunEnd, end_of
from casenotes.core.errors import LedgerUnavailable, RunNotFound
from casenotes.core.model import ChatSession, DiagnosisRun, RunKey
from casenotes.core.service.recording import Recorder
from casenotes.core.words import RunStatus
from casenotes.ports.ledger import UnitOfWork
from casenotes.ports.through_work import ending

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
        gone = [key for key in (mine - kept) & self.running() if not await self._is_ours(key)]
        if gone:
            await self.lost(gone)

    async def _is_ours(self, key: RunKey) -> bool:
        """Whether a run that was not renewed is ours still: somebody held its row, and the next round renews it."""
        async with self.recorder.ledger.view() as view:
            run = await view.runs.get(*key)
        return run is not None and run.status is RunStatus.RUNNING and run.lease_owner == self.recorder.owner

    async def _end_expired(self) -> None:
        async with self.recorder.ledger.view() as view:
            expired = await view.runs.expired(now=self.recorder.clock(), limit=_BATCH)
        for run in expired:
            if (run.session_id, run.run_id) in self.running():
                continue
            try:
                await self._end(run)
            except LedgerUnavailable as fault:
                # Somebody holds it, perhaps: the others are not to wait for that.
                self.recorder.observer.faulted(
                    run.session_id, run.run_id, "ending a run without an owner", fault
                )

    async def _end(self, run: DiagnosisRun) -> None:
        key, ledger = (run.session_id, run.run_id), self.recorder.ledger

        def decide(found: OnRecord) -> RunEnd:
            now = self.recorder.clock()
            if not rules.lease_expired(found.run, now):
                raise _NotOrphaned
            return end_of(found, _orphaned(now), expires_at=None)

        async def end_with_a_session(work: UnitOfWork) -> DiagnosisRun:
            """For a run that another program left without one; undone if the run is gone, or ended, meanwhile."""
            if await work.runs.get(*key) is None:
                raise RunNotFound(*key)
            made = ChatSession(run.session_id, created_at=run.created_at, last_active_at=run.created_at)
            await work.sessions.ensure(made)
            return await ending(*key, decide)(work)

        try:
            try:
                ended = await ledger.end(*key, decide)
            except RunNotFound:
                ended = await ledger.transact(end_with_a_session)
        except (RunNotFound, _NotOrphaned):
            return
        self.recorder.observer.ended(ended)


class _NotOrphaned(Exception):
    """The run has ended meanwhile, or somebody keeps its lease."""


def _orphaned(now: datetime) -> Outcome:
    return lambda run, metrics, _: run.fail(ORPHANED, now, metrics)
