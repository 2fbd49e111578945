"""A run that is made to end while it runs: by a shutdown, an erasure, another process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from unit.service.scene import Scene, hang, play, scene

from casenotes.adapters.context import MemoryContextStore
from casenotes.core.errors import ContextUnavailable, SessionNotFound, ShuttingDown
from casenotes.core.model import DiagnosisRun, MessagePair
from casenotes.core.service import executions
from casenotes.core.service.conducting import INTERRUPTED, Limits
from casenotes.core.service.stream import Execution, Order
from casenotes.core.words import AgentFlow, RunStatus
from casenotes.ports.agent import AgentEvent, Answered, Enquiry, StepTaken


async def under_way(s: Scene) -> Execution:
    """A run of ``s-1`` whose agent is at work."""
    execution = await s.service.executions.submit(Order("s-1", "Why?", AgentFlow.CHAT))
    await asyncio.sleep(0.02)
    return execution


async def swallowed() -> None:
    """Wait for a cancellation and lose it, as ``asyncio.wait_for`` may do up to Python 3.11."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return


def test_a_shutdown_lets_runs_finish_then_ends_the_rest_as_interrupted_and_takes_no_more() -> None:
    async def act() -> None:
        s = scene(hang)
        execution = await s.service.executions.submit(Order("s-1", "Why?", AgentFlow.STATE_GRAPH))
        await asyncio.sleep(0.02)
        await s.service.executions.close(timedelta(seconds=0.01))
        run = (await execution.outcome()).run
        assert run.status is RunStatus.FAILED
        assert run.error_message == "the service was shut down before the run had ended"
        assert isinstance(run.orchestration_trace, dict)
        assert run.orchestration_trace["terminationReason"] == "INTERRUPTED"
        with pytest.raises(ShuttingDown):
            await s.ask()

    play(act)


def test_erasing_a_session_ends_its_run_and_leaves_nothing() -> None:
    async def act() -> None:
        s = scene(hang)
        execution = await under_way(s)
        erasure = await s.service.conversations.erase("s-1")
        run = (await execution.outcome()).run
        assert (run.status, run.error_message) == (RunStatus.FAILED, "the session was erased")
        assert (erasure.runs, erasure.agent_steps) == (1, 1)
        with pytest.raises(SessionNotFound):
            await s.service.reading.trace("s-1")

    play(act)


def test_a_run_that_is_to_end_before_it_is_at_work_ends_and_is_told_all_the_same() -> None:
    async def act() -> None:
        s = scene(hang)
        execution = await s.service.executions._start(Order("s-1", "Why?", AgentFlow.CHAT))
        # Nothing else had its turn in between: the run's task exists, and has not begun.
        await s.service.executions.interrupt([execution.run.run_id], INTERRUPTED)
        async with asyncio.timeout(5):
            assert (await execution.outcome()).run.status is RunStatus.FAILED
        assert s.service.executions.running() == frozenset()

    play(act)


def test_a_run_that_another_process_has_ended_stops_and_is_told_as_failed() -> None:
    async def act() -> None:
        go = asyncio.Event()

        async def waits(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
            await go.wait()
            yield StepTaken("planner")
            yield Answered("x")

        s = scene(waits)
        other = scene(ledger=s.ledger, owner="two")
        execution = await s.service.executions.submit(Order("s-1", "Why?", AgentFlow.CHAT))
        other.clock.move(timedelta(minutes=5))
        await other.service.leases.tick()
        go.set()
        assert (await execution.outcome()).run.status is RunStatus.FAILED
        trace = await s.service.reading.trace("s-1")
        assert trace.run is not None
        assert (trace.run.status, trace.agent_steps) == (RunStatus.FAILED, ())
        assert "went away" in (trace.run.error_message or "")

    play(act)


class Forgetful(MemoryContextStore):
    """Loses the cancellation of whoever recalls from it."""

    async def recall(self, session_id: str) -> list[MessagePair]:
        await swallowed()
        return []


def test_a_run_ends_though_the_conversation_store_swallowed_the_word() -> None:
    async def act() -> None:
        s = scene(hang, context=Forgetful())
        execution = await under_way(s)
        async with asyncio.timeout(4):  # at once, not when it is told again
            await s.service.conversations.erase("s-1")
            assert (await execution.outcome()).run.error_message == "the session was erased"
        assert s.agent.enquiries == []

    play(act)


def test_a_run_ends_though_its_agent_swallowed_the_word() -> None:
    async def deaf(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        await swallowed()
        yield StepTaken("planner")
        yield Answered("an answer after all")

    async def act() -> None:
        s = scene(deaf)
        execution = await under_way(s)
        async with asyncio.timeout(4):
            await s.service.executions.interrupt([execution.run.run_id], INTERRUPTED)
        run = (await execution.outcome()).run
        assert (run.status, run.error_message, run.step_count) == (RunStatus.FAILED, INTERRUPTED[0], 0)

    play(act)


def test_a_run_whose_agent_swallowed_the_word_and_goes_on_waiting_is_told_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def deaf(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        await swallowed()
        await asyncio.Event().wait()
        yield Answered("never")

    async def act() -> None:
        s = scene(deaf)
        execution = await under_way(s)
        async with asyncio.timeout(30):
            await s.service.executions.interrupt([execution.run.run_id], INTERRUPTED)
        assert (await execution.outcome()).run.error_message == INTERRUPTED[0]

    monkeypatch.setattr(executions, "_ASKED_AGAIN_SECONDS", 0.05)
    play(act)


def test_a_run_that_nobody_asked_to_end_goes_on_whatever_its_agent_did_with_cancellations() -> None:
    """An older library's time-out cancels the task, and leaves it counted as cancelled."""

    async def odd(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)
        await swallowed()
        yield StepTaken("planner")
        yield Answered("an answer")

    async def act() -> None:
        run = await scene(odd).ask()
        assert (run.status, run.answer, run.step_count) == (RunStatus.SUCCESS, "an answer", 1)

    play(act)


def test_a_run_whose_agent_swallowed_the_time_out_ends_by_it_at_its_next_event() -> None:
    async def deaf(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        await swallowed()
        yield StepTaken("planner")
        yield Answered("too late")

    async def act() -> None:
        run = await scene(deaf, limits=Limits(run_timeout=timedelta(seconds=0.05))).ask()
        assert (run.status, run.step_count) == (RunStatus.FAILED, 0)
        assert "took longer" in (run.error_message or "")

    play(act)


class Slow(MemoryContextStore):
    """Adds a pair only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may = asyncio.Event(), asyncio.Event()

    async def append(self, session_id: str, pair: MessagePair) -> None:
        self.asked.set()
        await self.may.wait()
        await super().append(session_id, pair)


async def asked_while_erased_elsewhere(context: Slow) -> DiagnosisRun:
    """A run whose pair is being added while another process erases its session."""
    s = scene(context=context)
    other = scene(ledger=s.ledger, context=context, owner="two")
    asking = asyncio.create_task(s.ask())
    await context.asked.wait()
    await other.service.conversations.erase("s-1")
    context.may.set()
    return await asking


def test_a_pair_that_comes_after_its_session_was_erased_elsewhere_is_forgotten() -> None:
    async def act() -> None:
        context = Slow()
        assert (await asked_while_erased_elsewhere(context)).status is RunStatus.SUCCESS
        assert await context.recall("s-1") == ()

    play(act)


class Unheard(Slow):
    """Adds the pair, and its word of that is lost."""

    async def append(self, session_id: str, pair: MessagePair) -> None:
        await super().append(session_id, pair)
        raise ContextUnavailable("the connection was cut")


def test_a_pair_of_an_erased_session_is_forgotten_though_nobody_heard_that_it_was_added() -> None:
    async def act() -> None:
        context = Unheard()
        assert (await asked_while_erased_elsewhere(context)).error_message == "the session was erased"
        assert await context.recall("s-1") == ()

    play(act)
