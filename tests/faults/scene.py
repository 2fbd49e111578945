"""One process's service over real stores, whose leases are kept by hand and whose clock can be moved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from attrs import define, frozen
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from support.invariants import assert_sound
from support.scripted import Script, Scripted, usual

from casenotes.adapters.context import MemoryContextStore
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.model import DiagnosisRun
from casenotes.core.service.conducting import Limits
from casenotes.core.service.service import Service
from casenotes.core.service.stream import Order
from casenotes.core.words import AgentFlow
from casenotes.entrypoints.ambient import new_id, utc_now
from casenotes.entrypoints.bootstrap import open_ledger_at
from casenotes.entrypoints.observing import LoggingObserver
from casenotes.ports.context import ContextStore
from casenotes.ports.ledger import Ledger

LEASE = timedelta(seconds=30)


@define
class MovingClock:
    """The real time, moved by ``by``; or a moment at which it stands still."""

    by: timedelta = timedelta(0)
    frozen: datetime | None = None

    def __call__(self) -> datetime:
        return (utc_now() if self.frozen is None else self.frozen) + self.by


@frozen
class Replica:
    """A process that executes runs, and a look at its ledger that passes it by."""

    service: Service
    clock: MovingClock
    _look: AsyncEngine

    async def ask(self, session_id: str, question: str = "Why?") -> DiagnosisRun:
        """Ask, and give the run as it was told to have ended. Raises ``LedgerUnavailable`` when refused."""
        execution = await self.service.executions.submit(Order(session_id, question, AgentFlow.CHAT))
        return (await execution.outcome()).run

    async def stored(self, session_id: str) -> list[dict[str, Any]]:
        """The session's runs in the database itself, as they were begun."""
        query = sa.text("select * from diagnosis_run where session_id = :s order by id")
        async with self._look.connect() as connection:
            return [dict(row) for row in (await connection.execute(query, {"s": session_id})).mappings()]


def _service(
    ledger: Ledger, context: ContextStore | None, script: Script, clock: MovingClock, limits: Limits
) -> Service:
    return Service.over(
        ledger=ledger,
        context=context or MemoryContextStore(window=6, ttl=86400, clock=clock),
        diagnostician=Scripted(script),
        clock=clock,
        new_id=new_id,
        observer=LoggingObserver(),
        limits=limits,
        lease=LEASE,
        context_ttl=timedelta(days=1),
    )


@asynccontextmanager
async def replica(
    url: str,
    *,
    through: str | None = None,
    context: ContextStore | None = None,
    script: Script = usual,
    clock: MovingClock | None = None,
    limits: Limits | None = None,
) -> AsyncIterator[Replica]:
    """A replica over the ledger at ``url``, which it reaches ``through`` another address if one is given."""
    clock = clock or MovingClock()
    ledger = await open_ledger_at(through or url)
    look = create_async_engine(url)
    service = _service(ledger, context, script, clock, limits or Limits())
    try:
        yield Replica(service, clock, look)
    finally:
        await look.dispose()
        await service.executions.close(timedelta(0))
        await service.context.close()
        await ledger.close()


async def settled(url: str) -> None:
    """Another process ends, a lease's time later, the runs that nobody executes; then all must be sound."""
    async with replica(url, clock=MovingClock(LEASE + timedelta(seconds=1))) as survivor:
        await survivor.service.leases.tick()
    await assert_sound(url)


async def told_or_refused(asking: Awaitable[DiagnosisRun]) -> DiagnosisRun | None:
    """The run, or ``None`` when it was refused because the ledger was away."""
    try:
        return await asking
    except LedgerUnavailable:
        return None


def play(scenario: Callable[[], Awaitable[object]], seconds: float = 240) -> None:
    """Run a test's coroutine, bounded in time."""

    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await scenario()

    asyncio.run(bounded())
