"""An agent that does not come to an end: its run is ended, and nobody else notices."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest
from support.scripted import Scripted, usual
from support.service import Backend, Running
from unit.service.scene import play, scene

from casenotes.core.service.conducting import Limits
from casenotes.core.words import RunStatus
from casenotes.ports.agent import AgentEvent, Answered, Chunk, Enquiry, Progress, StepTaken, ToolCalled

ROUNDS: dict[str, Callable[[], AgentEvent]] = {
    "tool": lambda: ToolCalled("logs.search", {"q": "again"}, "nothing"),
    "step": lambda: StepTaken("planner", output="look again"),
    "answer": lambda: Chunk("and again\n"),
    "note": lambda: Progress("looking"),
    "nothing": lambda: Chunk(""),
}


@pytest.mark.parametrize("kind", ["tool", "answer"])
def test_an_agent_that_loops_without_a_pause_keeps_nobody_waiting_and_is_timed_out(
    backend: Backend, kind: str
) -> None:
    """It never waits for anything: only that the service does so between events lets others, and the time-out, in."""
    rounds = 0

    async def looping(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        nonlocal rounds
        while enquiry.question == "loop" and rounds < 1_000_000:
            rounds += 1
            yield ROUNDS[kind]()
        async for event in usual(enquiry):
            yield event

    async def scenario(here: Running) -> None:
        async with here.client.streaming(
            "/api/chat_stream", {"sessionId": "s-1", "question": "loop", "flow": "chat"}
        ) as (response, events):
            run_id = (await anext(events)).payload["runId"]
            assert (await here.client.ask("q", "s-2"))["success"] is True
            assert (await here.client.trace("s-1", run_id)).data["run"]["status"] == "RUNNING"
            response.close()
        await here.quiet()
        trace = (await here.client.trace("s-1", run_id)).data
        assert trace["run"]["status"] == "FAILED" and "took longer than" in trace["run"]["errorMessage"]
        assert trace["run"]["toolCallCount"] == len(trace["toolInvocations"])
        assert rounds < 1_000_000

    backend.run(scenario, Scripted(looping), run_timeout=timedelta(seconds=1.5))


@pytest.mark.parametrize("kind", ROUNDS)
def test_an_agent_that_loops_is_ended_before_it_fills_the_store(kind: str) -> None:
    rounds = 0

    async def looping(_: Enquiry) -> AsyncIterator[AgentEvent]:
        nonlocal rounds
        while rounds < 100_000:
            rounds += 1
            yield ROUNDS[kind]()
        yield Answered("it ended")

    async def act() -> None:
        s = scene(looping, limits=Limits(max_facts=50, max_told=50 * 64))
        ended = await s.ask()
        assert ended.status is RunStatus.FAILED and rounds == 51
        assert ended.error_message is not None and "than a run may" in ended.error_message
        trace = await s.service.reading.trace("s-1")
        assert len(trace.agent_steps) + len(trace.tool_invocations) <= 50
        assert s.observed.faults == [], "it is no fault of ours"

    play(act)


def test_an_answer_in_one_piece_that_is_too_long_fails_the_run() -> None:
    async def endless(_: Enquiry) -> AsyncIterator[AgentEvent]:
        yield Answered("x" * 1001)

    async def act() -> None:
        assert (await scene(endless, limits=Limits(max_told=1000)).ask()).status is RunStatus.FAILED
        assert (await scene(endless, limits=Limits(max_told=1001)).ask()).status is RunStatus.SUCCESS

    play(act)
