"""The clock stands still, or is set back by an hour: order, times and leases keep what they promise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from faults.scene import LEASE, MovingClock, Replica, play, replica, settled
from support.scripted import Gate, usual

from casenotes.core.rules import latest_run
from casenotes.core.service.leases import ORPHANED
from casenotes.core.words import AgentFlow, RunStatus
from casenotes.ports.agent import AgentEvent, Enquiry

MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


async def require_times_in_order(here: Replica, session_id: str) -> None:
    """No run ends or is changed before it began, and none takes less than no time."""
    for summary in await here.service.reading.runs(session_id):
        run = (await here.service.reading.trace(session_id, summary.run_id)).run
        assert run is not None and run.finished_at is not None and run.duration is not None
        assert run.finished_at >= run.created_at
        assert run.updated_at >= run.created_at
        assert run.feedback_at is None or run.updated_at >= run.feedback_at
        assert run.duration >= timedelta(0)


async def require_newest_by_the_rule(here: Replica, session_id: str) -> str:
    """The latest run is the newest by ``(created_at, id)`` for all who ask for it; its id."""
    stored = await here.stored(session_id)
    newest: str = max(stored, key=lambda row: (row["created_at"], row["id"]))["run_id"]
    assert (await here.service.reading.runs(session_id))[0].run_id == newest
    latest = (await here.service.reading.trace(session_id)).run
    assert latest is not None and latest.run_id == newest
    receipt = await here.service.feedback.give(session_id, "useful")
    assert (receipt.run_id, receipt.fallback_to_latest_run) == (newest, True)
    return newest


def test_runs_of_one_moment_are_told_apart_by_their_ids(url: str) -> None:
    async def scenario() -> None:
        clock = MovingClock(frozen=MOMENT)
        async with replica(url, clock=clock) as here:
            told = [await here.ask("s", f"question {number}") for number in range(3)]
            assert {run.created_at for run in told} == {MOMENT}
            assert latest_run(told) == told[-1]
            assert await require_newest_by_the_rule(here, "s") == told[-1].run_id
            await require_times_in_order(here, "s")
        await settled(url)

    play(scenario)


def test_clock_set_back_during_a_run_ends_it_no_earlier_than_it_began(url: str) -> None:
    clock = MovingClock(frozen=MOMENT)

    async def set_back(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        events = usual(enquiry)
        yield await anext(events)
        clock.by = -HOUR
        async for event in events:
            yield event

    async def scenario() -> None:
        async with replica(url, clock=clock, script=set_back) as here:
            run = await here.ask("s")
            assert run.status is RunStatus.SUCCESS
            assert (run.created_at, run.finished_at) == (MOMENT, MOMENT)
            session = await here.service.reading.session("s")
            assert session.last_active_at == MOMENT
            await require_newest_by_the_rule(here, "s")
            await require_times_in_order(here, "s")
        await settled(url)

    play(scenario)


def test_clock_set_back_after_a_rating_leaves_the_run_changed_when_it_was(url: str) -> None:
    clock, gate = MovingClock(frozen=MOMENT), Gate()

    async def scenario() -> None:
        async with replica(url, clock=clock, script=gate) as here:
            asking = asyncio.create_task(here.ask("s"))
            await gate.reached.wait()
            await here.service.feedback.give("s", "useful")
            clock.by = -HOUR
            gate.opened.set()
            assert (await asking).status is RunStatus.SUCCESS
            await require_times_in_order(here, "s")
        await settled(url)

    play(scenario)


def test_clock_set_back_between_runs_leaves_the_newest_the_newest(url: str) -> None:
    async def scenario() -> None:
        clock = MovingClock(frozen=MOMENT)
        async with replica(url, clock=clock) as here:
            before = await here.ask("s", "before")
            clock.by = -HOUR
            after = await here.ask("s", "after")
            assert after.created_at == MOMENT - HOUR
            assert await require_newest_by_the_rule(here, "s") == before.run_id
            assert (await here.service.reading.session("s")).last_active_at == MOMENT
            clock.by = SECOND
            again = await here.ask("s", "again")
            assert await require_newest_by_the_rule(here, "s") == again.run_id
            assert (await here.service.reading.session("s")).last_active_at == MOMENT + SECOND
            await require_times_in_order(here, "s")
        await settled(url)

    play(scenario)


@pytest.mark.parametrize("forth_again", [False, True], ids=["and left", "and put right again"])
def test_lease_of_a_living_owner_outlives_a_clock_that_is_set_back(forth_again: bool, url: str) -> None:
    """Two replicas on one clock; the owner renews while it is behind."""
    clock, gate = MovingClock(frozen=MOMENT), Gate()

    async def scenario() -> None:
        async with replica(url, clock=clock, script=gate) as owner, replica(url, clock=clock) as other:
            asking = asyncio.create_task(owner.ask("s"))
            await gate.reached.wait()
            for moved in (-HOUR, LEASE / 3, LEASE / 3, HOUR if forth_again else LEASE / 3):
                clock.by += moved
                await other.service.leases.tick()
                await owner.service.leases.tick()
            assert [row["status"] for row in await owner.stored("s")] == ["RUNNING"]
            gate.opened.set()
            assert (await asking).status is RunStatus.SUCCESS
        await settled(url)

    play(scenario)


def test_run_of_a_dead_owner_ends_once_a_clock_that_was_set_back_has_come_past_its_lease(url: str) -> None:
    async def scenario() -> None:
        clock = MovingClock(frozen=MOMENT)
        async with replica(url, clock=clock) as here:
            await here.service.recorder.start("s", "Why?", AgentFlow.CHAT)  # and nobody executes it
            clock.by = -HOUR
            await here.service.leases.tick()
            assert [row["status"] for row in await here.stored("s")] == ["RUNNING"]
            clock.by = LEASE
            await here.service.leases.tick()
            assert [row["status"] for row in await here.stored("s")] == ["RUNNING"], "its last moment"
            clock.by += timedelta(microseconds=1)
            await here.service.leases.tick()
            assert [row["error_message"] for row in await here.stored("s")] == [ORPHANED]
            await require_times_in_order(here, "s")
        await settled(url)

    play(scenario)
