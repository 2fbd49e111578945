"""However a run's block ends, the run ends with it, once, and says why."""

from __future__ import annotations

import asyncio
import logging

import pytest

import casenotes
from casenotes import RunStatus, RunTrace
from casenotes.entrypoints.open_runs import CLOSED
from casenotes.entrypoints.run_block import NO_ANSWER


async def end_of(notes: casenotes.Notes, run: casenotes.Run) -> tuple[str, str | None, str | None]:
    trace = await notes.trace(run.session_id, run.run_id)
    assert trace.run is not None
    return trace.run.status, trace.answer, trace.run.error_message


def test_a_block_without_an_answer_is_failed_and_says_so(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            async with notes.run("q") as run:
                await run.tool("t")
            assert await end_of(notes, run) == (RunStatus.FAILED, None, NO_ANSWER)

    asyncio.run(scenario())


def test_an_exception_is_recorded_without_its_words_and_goes_on(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            with pytest.raises(RuntimeError, match="hunter2"):
                async with notes.run("q") as run:
                    async with run.step("s"):
                        await run.tool("t")
                    run.answer("never stored")
                    raise RuntimeError("password=hunter2")
            assert await end_of(notes, run) == (RunStatus.FAILED, None, "the run raised RuntimeError")
            trace = await notes.trace(run.session_id)
            assert trace.run is not None
            assert (trace.run.step_count, trace.run.tool_call_count) == (1, 1)
            assert "hunter2" not in repr(trace)

    asyncio.run(scenario())


def test_a_type_made_up_at_run_time_is_not_named() -> None:
    async def scenario() -> None:
        odd = type("password=hunter2", (Exception,), {})
        async with casenotes.open("memory://") as notes:
            with pytest.raises(odd):
                async with notes.run("q") as run:
                    raise odd
            assert (await end_of(notes, run))[2] == "the run raised an exception"

    asyncio.run(scenario())


def test_a_cancelled_block_is_interrupted_and_stays_cancelled(url: str) -> None:
    async def scenario() -> None:
        begun = asyncio.Event()
        runs: list[casenotes.Run] = []

        async def work(notes: casenotes.Notes) -> None:
            async with notes.run("q", flow="STATE_GRAPH") as run, run.step("s"):
                runs.append(run)
                run.graph.entered("planner")
                begun.set()
                await asyncio.Event().wait()

        async with casenotes.open(url) as notes:
            task = asyncio.create_task(work(notes))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            trace = await notes.trace(runs[0].session_id)
        assert trace.run is not None
        assert trace.run.status is RunStatus.FAILED
        assert trace.run.error_message == "the run was interrupted before it had ended"
        assert [step.error_message for step in trace.agent_steps] == [
            "the step was interrupted before it had ended"
        ]
        graph = trace.run.orchestration_trace
        assert isinstance(graph, dict)
        assert graph["terminationReason"] == "INTERRUPTED"

    asyncio.run(scenario())


def test_a_timeout_around_the_block_is_a_timeout_to_the_caller(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(None) as deadline, notes.run("q") as run:
                    deadline.reschedule(asyncio.get_running_loop().time())
                    await asyncio.Event().wait()
            assert (await end_of(notes, run))[0] == RunStatus.FAILED

    asyncio.run(scenario())


def test_a_cancellation_while_the_end_is_stored_leaves_a_whole_end(url: str) -> None:
    """The answer was given: it is kept, and the cancellation is raised once it is durable."""

    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            runs: list[casenotes.Run] = []

            async def work() -> None:
                async with notes.run("q") as run:
                    runs.append(run)
                    run.answer("a")
                    current = asyncio.current_task()
                    assert current is not None
                    asyncio.get_running_loop().call_soon(current.cancel)

            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(work())
            assert await end_of(notes, runs[0]) == (RunStatus.SUCCESS, "a", None)

    asyncio.run(scenario())


def test_a_cancellation_at_any_moment_leaves_no_run_that_runs(url: str) -> None:
    """The block is cancelled after each number of turns of the loop, until it gets to its end first."""

    async def work(notes: casenotes.Notes) -> None:
        async with notes.run("q", session="s") as run:
            async with run.step("planner"):
                await run.tool("t")
            run.answer("a")

    async def cancelled_after(notes: casenotes.Notes, turns: int) -> bool:
        task = asyncio.create_task(work(notes))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            turns = 0
            while await cancelled_after(notes, turns):
                turns += 1 + turns // 8
            runs = await notes.runs("s", limit=500)
        assert {run.status for run in runs} == {RunStatus.SUCCESS, RunStatus.FAILED}

    asyncio.run(scenario())


def test_the_last_answer_counts_and_is_clean(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            async with notes.run("what is password=hunter2?") as run:
                await run.tool("logs.search", {"api_key": "abcdef"}, result="token=abcdef")
                run.answer("a first thought")
                run.answer("Seen in [T1], not [T2]. password=hunter2 \x00\ud800", degraded=True)
            trace = await notes.trace(run.session_id)
        assert trace.answer == "Seen in [T1], not [unsupported]. password=[redacted:password] \ufffd\ufffd"
        assert trace.run is not None
        assert trace.run.degraded
        assert isinstance(trace.self_evaluation, dict)
        assert trace.self_evaluation["citations"] == {"cited": 1, "unsupported": 1, "valid": False}
        assert "hunter2" not in repr(trace)
        assert "abcdef" not in repr(trace)

    asyncio.run(scenario())


def test_an_answer_may_cite_a_call_that_is_made_after_it_was_given() -> None:
    async def scenario() -> None:
        async with casenotes.open("memory://") as notes:
            async with notes.run("q") as run:
                run.answer("see [T1]")
                await run.tool("t")
            assert (await end_of(notes, run))[1] == "see [T1]"

    asyncio.run(scenario())


def test_a_run_that_has_ended_takes_nothing_more(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            async with notes.run("q") as run:
                run.answer("a")
            with pytest.raises(casenotes.InvalidTransition):
                run.answer("b")
            with pytest.raises(casenotes.InvalidTransition):
                await run.tool("t")
            with pytest.raises(casenotes.InvalidTransition):
                async with run.step("s"):
                    pass
            trace = await notes.trace(run.session_id)
            assert (trace.answer, trace.agent_steps, trace.tool_invocations) == ("a", (), ())

    asyncio.run(scenario())


def test_a_run_whose_session_is_erased_meanwhile_says_so_to_its_block(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            with pytest.raises(casenotes.RunNotFound):
                async with notes.run("q", session="s") as run:
                    await notes.erase("s")
                    run.answer("a")
            with pytest.raises(casenotes.SessionNotFound):
                await notes.trace("s")

    asyncio.run(scenario())


def test_a_fault_of_the_record_never_hides_the_blocks_own(url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            with pytest.raises(ZeroDivisionError):
                async with notes.run("q", session="s"), asyncio.timeout(None):
                    await notes.erase("s")
                    raise ZeroDivisionError

    with caplog.at_level(logging.WARNING, "casenotes"):
        asyncio.run(scenario())
    assert "ending a failed run failed" in caplog.text


def test_runs_left_open_when_the_record_is_closed_are_interrupted(file_url: str) -> None:
    async def scenario() -> RunTrace:
        begun, closed = asyncio.Event(), asyncio.Event()
        runs: list[casenotes.Run] = []

        async def straggler(notes: casenotes.Notes) -> None:
            async with notes.run("q") as run:
                runs.append(run)
                begun.set()
                await closed.wait()
                run.answer("too late")

        async with casenotes.open(file_url) as notes:
            task = asyncio.create_task(straggler(notes))
            await begun.wait()
        closed.set()
        with pytest.raises(casenotes.InvalidTransition):
            await task
        async with casenotes.open(file_url) as notes:
            return await notes.trace(runs[0].session_id)

    trace = asyncio.run(scenario())
    assert trace.run is not None
    assert (trace.run.status, trace.run.error_message) == (RunStatus.FAILED, CLOSED)


@pytest.mark.parametrize(
    ("question", "session", "flow"),
    [
        ("", None, "CHAT"),
        ("  ", None, "CHAT"),
        ("q" * 32_001, None, "CHAT"),
        ("q", "a/b", "CHAT"),
        ("q", "x" * 129, "CHAT"),
        ("q", None, "LEGACY"),
        ("q", None, "chat"),
    ],
)
def test_what_no_run_can_begin_with_is_refused_and_nothing_is_written(
    url: str, question: str, session: str | None, flow: str
) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            with pytest.raises(casenotes.InvalidInput):
                async with notes.run(question, session=session, flow=flow):  # type: ignore[arg-type]
                    pass
            assert list(await notes.sessions()) == []

    asyncio.run(scenario())
