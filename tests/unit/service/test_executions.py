"""Every way out of an execution ends in one terminal status, and what was told is what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.service.scene import followed, hang, play, scene, told

from casenotes.core.errors import InvalidInput, TooManyRunning
from casenotes.core.orchestration import GraphEnded, Node, NodeEntered, TerminationReason
from casenotes.core.service.conducting import Limits
from casenotes.core.service.stream import Order
from casenotes.core.words import AgentFlow, RunStatus
from casenotes.ports.agent import (
    AgentEvent,
    Answered,
    Chunk,
    Enquiry,
    GraphMoved,
    Progress,
    ToolCalled,
)


async def fault(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    yield ToolCalled("logs.search", {}, "x")
    yield GraphMoved(NodeEntered(enquiry.run_id, Node.PLANNER))
    raise RuntimeError("the words of an exception, password=hunter2")


async def silent(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    yield Chunk("half an answer\n")


def test_an_answered_run_is_stored_with_its_own_steps_tools_and_counts() -> None:
    async def act() -> None:
        s = scene()
        first, second = await s.ask("one"), await s.ask("two")
        for run, question in ((first, "one"), (second, "two")):
            trace = await s.service.reading.trace("s-1", run.run_id)
            assert trace.run is not None
            assert (trace.run.status, trace.answer) == (RunStatus.SUCCESS, f"About {question}: [T1]\n")
            assert [t.arguments for t in trace.tool_invocations] == [{"q": question}]
            assert (trace.run.step_count, trace.run.tool_call_count) == (1, 1)
            assert trace.tool_invocations[0].step_sequence == trace.agent_steps[0].sequence == 1
        assert (await s.service.reading.session("s-1")).message_pair_count == 2
        assert s.observed.over == [first, second]

    play(act)


@pytest.mark.parametrize(
    ("script", "reason", "why"),
    [
        (hang, "the run took longer than 0.05 s", "TIMEOUT"),
        (fault, "an internal fault ended the run", "ERROR"),
    ],
)
def test_a_run_that_fails_keeps_what_had_happened_and_says_why(script: object, reason: str, why: str) -> None:
    async def act() -> None:
        s = scene(script, limits=Limits(run_timeout=timedelta(seconds=0.05)))  # type: ignore[arg-type]
        run = await s.ask(flow=AgentFlow.STATE_GRAPH)
        trace = await s.service.reading.trace("s-1", run.run_id)
        assert trace.run is not None
        assert (trace.run.status, trace.run.error_message, trace.answer) == (RunStatus.FAILED, reason, None)
        assert len(trace.agent_steps) + len(trace.tool_invocations) == 1
        assert isinstance(trace.run.orchestration_trace, dict)
        assert trace.run.orchestration_trace["terminationReason"] == why
        assert trace.run.orchestration_trace["transitions"] == [{"from": "START", "to": "planner"}]
        assert (await s.service.reading.session("s-1")).message_pair_count == 0
        assert list(await s.context.recall("s-1")) == []

    play(act)


def test_a_diagnostician_that_ends_without_an_answer_fails_the_run() -> None:
    async def act() -> None:
        s = scene(silent)
        assert (await s.ask()).status is RunStatus.FAILED
        assert s.observed.faults == ["executing the run"]

    play(act)


def test_a_foreign_graph_event_fails_the_run_and_is_not_stored() -> None:
    async def foreign(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        yield GraphMoved(NodeEntered("run-of-somebody-else", Node.PLANNER))
        yield Answered("x")

    async def act() -> None:
        run = await scene(foreign).ask(flow=AgentFlow.STATE_GRAPH)
        assert (run.status, run.orchestration_trace) == (RunStatus.FAILED, None)

    play(act)


def test_a_graph_that_ends_in_the_fallback_is_a_degraded_success() -> None:
    async def fallback(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        yield GraphMoved(NodeEntered(enquiry.run_id, Node.FALLBACK))
        yield GraphMoved(GraphEnded(enquiry.run_id, TerminationReason.EVIDENCE_EXHAUSTED))
        yield Answered("Nothing was found.")

    async def act() -> None:
        run = await scene(fallback).ask(flow=AgentFlow.STATE_GRAPH)
        assert (run.status, run.degraded) == (RunStatus.SUCCESS, True)

    play(act)


@given(st.lists(st.sampled_from(["a", "\n", "\r", "\u2028", "password=x y", "[T1]", "[T7]", "é", "\ud800"])))
def test_what_is_streamed_is_exactly_what_is_stored(pieces: list[str]) -> None:
    async def speak(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        yield ToolCalled("t")
        for piece in pieces:
            yield Chunk(piece)
            yield Progress("on it")
        yield Answered()

    async def act() -> None:
        s = scene(speak)
        events = await followed(s, Order("s-1", "Why?", AgentFlow.CHAT))
        trace = await s.service.reading.trace("s-1")
        assert trace.answer == told(events)
        assert "[T7]" not in (trace.answer or "")

    play(act)


def test_a_secret_that_comes_in_two_pieces_is_redacted_in_the_stream() -> None:
    async def leak(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        yield Chunk("the pass")
        yield Chunk("word=hun")
        yield Chunk("ter2 did it\n")
        yield Answered()

    async def act() -> None:
        events = await followed(scene(leak), Order("s-1", "Why?", AgentFlow.CHAT))
        assert told(events) == "the password=[redacted:password] did it\n"

    play(act)


def test_a_follower_that_goes_away_does_not_stop_the_run() -> None:
    async def act() -> None:
        go = asyncio.Event()

        async def slow(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
            yield Chunk("first\n")
            await go.wait()
            yield Answered()

        s = scene(slow)
        execution = await s.service.executions.submit(Order("s-1", "Why?", AgentFlow.CHAT))
        async for _ in execution.follow():
            break
        go.set()
        assert (await execution.outcome()).run.status is RunStatus.SUCCESS

    play(act)


def test_a_caller_cancelled_while_its_run_is_being_stored_leaves_a_run_that_is_executed() -> None:
    async def act() -> None:
        s = scene()
        asking = asyncio.create_task(s.ask())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await s.service.executions.close(timedelta(seconds=5))
        assert [run.status for run in s.observed.over] == [RunStatus.SUCCESS for _ in s.observed.begun]

    play(act)


def test_more_executions_than_allowed_are_refused_and_store_nothing() -> None:
    async def act() -> None:
        s = scene(hang, limits=Limits(max_running=2))
        orders = [Order(f"s-{i}", "Why?", AgentFlow.CHAT) for i in range(4)]
        results = await asyncio.gather(
            *(s.service.executions.submit(order) for order in orders), return_exceptions=True
        )
        assert sum(isinstance(result, TooManyRunning) for result in results) == 2
        assert len(s.observed.begun) == 2
        assert len(await s.service.reading.sessions()) == 2
        await s.service.executions.close(timedelta(0))

    play(act)


def test_a_living_run_keeps_its_lease_and_is_never_ended_by_another() -> None:
    async def act() -> None:
        s = scene(hang)
        other = scene(ledger=s.ledger, owner="two")
        await s.service.executions.submit(Order("s-1", "Why?", AgentFlow.CHAT))
        for _ in range(10):
            for one in (s, other):
                one.clock.move(timedelta(seconds=10))
            await s.service.leases.tick()
            await other.service.leases.tick()
        trace = await s.service.reading.trace("s-1")
        assert trace.run is not None
        assert trace.run.status is RunStatus.RUNNING
        await s.service.executions.close(timedelta(0))

    play(act)


def test_a_new_session_needs_a_good_id_and_a_refusal_stores_nothing() -> None:
    async def act() -> None:
        s = scene()
        with pytest.raises(InvalidInput, match=r"^sessionId: "):
            await s.ask(session_id="a/b")
        assert list(await s.service.reading.sessions()) == []

    play(act)
