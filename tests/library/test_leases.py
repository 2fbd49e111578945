"""A run whose block is open keeps its lease; one whose process is gone is ended by any other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from attrs import define, frozen

import casenotes
from casenotes.core.service.leases import ORPHANED, LeaseKeeper
from casenotes.core.service.recording import Recording
from casenotes.core.service.service import Service
from casenotes.core.words import AgentFlow
from casenotes.entrypoints.bootstrap import assemble, upgrade
from casenotes.entrypoints.library import leases_of
from casenotes.entrypoints.observing import LoggingObserver
from casenotes.entrypoints.open_runs import OpenRuns
from casenotes.entrypoints.settings import Settings

LEASE = timedelta(seconds=30)


@define
class SteppedClock:
    """A clock that stands still until it is moved."""

    now: datetime = datetime(2026, 12, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@frozen
class Process:
    """What a process that uses the library holds."""

    service: Service
    open_runs: OpenRuns
    leases: LeaseKeeper

    async def start(self) -> Recording:
        begun = await self.service.recorder.start("s", "q", AgentFlow.CHAT)
        assert isinstance(begun, Recording)
        return begun


@asynccontextmanager
async def process(url: str, clock: SteppedClock) -> AsyncIterator[Process]:
    settings = Settings(database_url=url, context_url="memory://", run_lease=LEASE)
    async with assemble(settings, LoggingObserver(), clock=clock) as service:
        open_runs = OpenRuns(LoggingObserver(), service.executions.conductor.remember)
        yield Process(service, open_runs, leases_of(service, open_runs))


def test_an_open_block_keeps_its_run_from_being_taken_for_dead(file_url: str) -> None:
    async def scenario() -> None:
        clock = SteppedClock()
        await upgrade(file_url)
        async with process(file_url, clock) as mine, process(file_url, clock) as other:
            async with mine.open_runs.block(mine.start) as run:
                for _ in range(3):
                    clock.now += LEASE * 0.9
                    await mine.leases.tick()
                    await other.leases.tick()
                run.answer("a")
            trace = await other.service.reading.trace("s")
            assert trace.answer == "a"
            assert mine.open_runs.running() == frozenset()

    asyncio.run(scenario())


def test_a_block_whose_lease_was_lost_is_told_and_renews_no_more(file_url: str) -> None:
    async def scenario() -> None:
        clock = SteppedClock()
        await upgrade(file_url)
        async with process(file_url, clock) as mine, process(file_url, clock) as other:
            with pytest.raises(casenotes.InvalidTransition):
                async with mine.open_runs.block(mine.start) as run:
                    clock.now += LEASE * 1.1
                    await other.leases.tick()
                    await mine.leases.tick()
                    assert mine.open_runs.running() == frozenset()
                    run.answer("too late")
            trace = await other.service.reading.trace("s")
            assert trace.run is not None
            assert (trace.run.status, trace.run.error_message) == (casenotes.RunStatus.FAILED, ORPHANED)

    asyncio.run(scenario())


def test_an_open_record_renews_by_itself(file_url: str) -> None:
    async def scenario() -> None:
        lease = timedelta(seconds=3)
        async with casenotes.open(file_url, run_lease=lease) as notes, notes.run("q") as run:
            first = (await notes.trace(run.session_id)).run
            assert first is not None
            async with asyncio.timeout(30):
                while True:
                    now = (await notes.trace(run.session_id)).run
                    assert now is not None
                    if now.lease_expires_at != first.lease_expires_at:
                        break
                    await asyncio.sleep(0.05)
            run.answer("a")

    asyncio.run(scenario())
