"""The ledger goes away while a run is executed: nothing is told that is not stored, and nothing stays open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta

import pytest
from unit.service.scene import play, scene

from casenotes.adapters.memory import MemoryLedger
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.words import RunStatus
from casenotes.ports.ledger import LedgerView, UnitOfWork
from casenotes.ports.through_work import ThroughWork


class Unlucky(ThroughWork):
    """A memory ledger that refuses the units of work that are listed, counted from 0."""

    def __init__(self, *refused: int) -> None:
        self.sound = MemoryLedger()
        self.refused = set(refused)
        self.asked = -1

    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        self.asked += 1
        if self.asked in self.refused:
            raise LedgerUnavailable("the database is away")
        async with self.sound.work() as work:
            yield work

    def view(self) -> AbstractAsyncContextManager[LedgerView]:
        return self.sound.view()

    async def check(self) -> None:
        await self.sound.check()

    async def close(self) -> None:
        await self.sound.close()


# The units of work of one plain run: 0 start, 1 step, 2 tool call, 3 end.


def test_a_run_that_cannot_be_stored_is_refused() -> None:
    async def act() -> None:
        s = scene(ledger=Unlucky(0))
        with pytest.raises(LedgerUnavailable):
            await s.ask()
        assert s.observed.begun == []
        assert s.service.executions.running() == frozenset()

    play(act)


@pytest.mark.parametrize("fact", [1, 2])
def test_a_run_whose_fact_cannot_be_stored_fails(fact: int) -> None:
    async def act() -> None:
        s = scene(ledger=Unlucky(fact))
        assert (await s.ask()).status is RunStatus.FAILED
        trace = await s.service.reading.trace("s-1")
        assert trace.run is not None
        assert trace.run.status is RunStatus.FAILED
        assert (trace.run.step_count, trace.run.tool_call_count) == (
            len(trace.agent_steps),
            len(trace.tool_invocations),
        )

    play(act)


def test_an_end_that_cannot_be_stored_is_tried_again() -> None:
    async def act() -> None:
        s = scene(ledger=Unlucky(3, 4))
        assert (await s.ask()).status is RunStatus.SUCCESS
        trace = await s.service.reading.trace("s-1")
        assert trace.run is not None
        assert trace.run.status is RunStatus.SUCCESS

    play(act)


def test_an_end_that_can_never_be_stored_is_told_as_failed_and_the_lease_ends_the_run() -> None:
    async def act() -> None:
        s = scene(ledger=Unlucky(*range(3, 10)))
        assert (await s.ask()).status is RunStatus.FAILED
        assert s.observed.faults == ["ending the run"]
        s.clock.move(timedelta(minutes=1))
        await s.service.leases.tick()
        trace = await s.service.reading.trace("s-1")
        assert trace.run is not None
        assert trace.run.status is RunStatus.FAILED

    play(act)
