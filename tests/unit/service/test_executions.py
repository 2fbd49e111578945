"""Every way out of an execution ends in one terminal status, and what was told is what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.service.scene import followed, play, scene, told

from casenotes.adapters.context import MemoryContextStore
from casenotes.core.errors import (
    ContextUnavailable,
    IdempotencyConflict,
    InvalidInput,
    RunNotFound,
    TooManyRunning,
)
from casenotes.core.model import MessagePair
from casenotes.core.orchestration import GraphEnded, Node, NodeEntered, TerminationReason
from casenotes.core.service.conducting import Limits
from casenotes.core.service.recording import Idempotency
from casenotes.core.service.stream import Order
from casenotes.core.words import AgentFlow, RunStatus
from casenotes.ports.agent import (
    AgentEvent,
    Answered,
    Chunk,
    Enquiry,
    GraphMoved,
    Progress,
    StepTaken,
    ToolCalled,
)


async def hang(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    yield StepTaken("planner")
    yield GraphMoved(NodeEntered(enquiry.run_id, Node.PLANNER))
    await asyncio.Event().wait()


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


def test_the_next_question_of_a_conversation_is_asked_with_the_earlier_turns() -> None:
    async def act() -> None:
        s = scene()
        await s.ask("one")
        await s.ask("two")
        await s.ask("else", session_id="s-2")
        assert [e.conversation for e in s.agent.enquiries] == [
            (),
            (MessagePair("one", "About one: [T1]\n"),),
            (),
        ]

    play(act)


def test_an_aiops_run_neither_reads_nor_adds_to_the_conversation() -> None:
    async def act() -> None:
        s = scene()
        await s.ask("one")
        await s.ask("ops", flow=AgentFlow.AI_OPS)
        await s.ask("two")
        assert s.agent.enquiries[1].conversation == ()
        assert len(s.agent.enquiries[2].conversation) == 1
        assert (await s.service.reading.session("s-1")).message_pair_count == 2

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


def test_a_key_used_again_gives_the_first_runs_answer_and_no_second_run() -> None:
    async def act() -> None:
        s = scene()
        key = Idempotency("k", "digest")
        first = await followed(s, Order("s-1", "Why?", AgentFlow.CHAT, idempotency=key))
        again = await followed(s, Order("s-fresh", "Why?", AgentFlow.CHAT, idempotency=key))
        assert told(again) == told(first)
        assert again[-1] == first[-1]
        assert len(await s.service.reading.sessions()) == 1
        with pytest.raises(IdempotencyConflict):
            await followed(s, Order("s-1", "Why?", AgentFlow.CHAT, idempotency=Idempotency("k", "other")))

    play(act)


def test_a_key_whose_first_run_still_runs_is_a_conflict() -> None:
    async def act() -> None:
        s = scene(hang)
        order = Order("s-1", "Why?", AgentFlow.CHAT, idempotency=Idempotency("k", "digest"))
        await s.service.executions.submit(order)
        with pytest.raises(IdempotencyConflict):
            await s.service.executions.submit(order)
        await s.service.executions.close(timedelta(0))

    play(act)


class AwayContext:
    """A conversation store that cannot be reached, or never answers."""

    def __init__(self, hangs: bool = False) -> None:
        self.hangs = hangs

    async def _away(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        raise ContextUnavailable("the conversation store is away")

    async def recall(self, session_id: str) -> list[MessagePair]:
        await self._away()
        return []

    async def append(self, session_id: str, pair: MessagePair) -> None:
        await self._away()

    async def clear(self, session_id: str) -> None:
        await self._away()

    async def ping(self) -> None:
        await self._away()

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("hangs", [False, True])
def test_a_run_without_its_conversation_is_answered_and_says_so(hangs: bool) -> None:
    async def act() -> None:
        s = scene(context=AwayContext(hangs), limits=Limits(context_timeout=timedelta(seconds=0.02)))
        run = await s.ask()
        assert (run.status, run.context_degraded) == (RunStatus.SUCCESS, True)
        trace = await s.service.reading.trace("s-1")
        assert trace.run is not None
        assert trace.run.context_degraded
        with pytest.raises(ContextUnavailable):
            await s.service.conversations.erase("s-1")
        assert (await s.service.reading.trace("s-1")).run is not None

    play(act)


def test_a_run_that_has_ended_and_is_added_to_its_conversation_has_no_lease_to_lose() -> None:
    class SlowContext(MemoryContextStore):
        async def append(self, session_id: str, pair: MessagePair) -> None:
            adding.set()
            await go_on.wait()
            await super().append(session_id, pair)

    adding, go_on = asyncio.Event(), asyncio.Event()

    async def act() -> None:
        context = SlowContext()
        s = scene(context=context)
        execution = await s.service.executions.submit(Order("s-1", "Why?", AgentFlow.CHAT))
        await adding.wait()
        ticking = asyncio.create_task(s.service.leases.tick())
        for _ in range(10):
            await asyncio.sleep(0)
        go_on.set()
        await ticking
        run = (await execution.outcome()).run
        assert (run.status, run.context_degraded) == (RunStatus.SUCCESS, False)
        assert [pair.question for pair in await context.recall("s-1")] == ["Why?"]

    play(act)


def test_a_new_session_needs_a_good_id_and_a_refusal_stores_nothing() -> None:
    async def act() -> None:
        s = scene()
        with pytest.raises(InvalidInput, match=r"^sessionId: "):
            await s.ask(session_id="a/b")
        assert list(await s.service.reading.sessions()) == []

    play(act)


def test_useful_feedback_given_while_a_run_is_running_makes_its_case_when_it_ends() -> None:
    async def act() -> None:
        go = asyncio.Event()

        async def waits(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
            await go.wait()
            yield Answered("Pool exhausted.")

        s = scene(waits)
        execution = await s.service.executions.submit(Order("s-1", "Why?", AgentFlow.CHAT))
        receipt = await s.service.feedback.give("s-1", "useful", run_id=execution.run.run_id)
        assert receipt.case_id is None
        go.set()
        await execution.outcome()
        (case,) = await s.service.reading.cases()
        assert (case.diagnosis_id, case.answer) == (execution.run.run_id, "Pool exhausted.")

    play(act)


def test_the_last_feedback_decides_on_the_one_case_of_a_run() -> None:
    async def act() -> None:
        s = scene()
        run = await s.ask()
        first = await s.service.feedback.give("s-1", "useful")
        assert (first.run_id, first.fallback_to_latest_run) == (run.run_id, True)
        await s.service.feedback.give("s-1", "not_useful", run_id=run.run_id)
        assert list(await s.service.reading.cases()) == []
        again = await s.service.feedback.give("s-1", "useful", run_id=run.run_id)
        assert (again.case_id, again.fallback_to_latest_run) == (first.case_id, False)
        assert [case.id for case in await s.service.reading.cases()] == [first.case_id]

    play(act)


def test_feedback_for_a_run_of_another_session_changes_neither() -> None:
    async def act() -> None:
        s = scene()
        foreign = await s.ask(session_id="s-2")
        own = await s.ask(session_id="s-1")
        with pytest.raises(RunNotFound):
            await s.service.feedback.give("s-1", "useful", run_id=foreign.run_id)
        for session_id, run in (("s-1", own), ("s-2", foreign)):
            assert (await s.service.reading.trace(session_id, run.run_id)).feedback is None

    play(act)
