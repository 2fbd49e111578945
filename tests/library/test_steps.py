"""Steps and tool calls: what is recorded, and in which step, whoever records at once."""

from __future__ import annotations

import asyncio

import pytest

import casenotes
from casenotes import RunTrace, StepStatus


async def recorded(notes: casenotes.Notes, run: casenotes.Run) -> RunTrace:
    return await notes.trace(run.session_id, run.run_id)


def test_a_step_keeps_what_was_set_in_it_and_how_long_it_took(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            async with notes.run("q") as run:
                async with run.step("planner", step_type="plan", model="m-1", input="in") as step:
                    step.output, step.input_tokens, step.output_tokens = "out", 12, 34
                run.answer("a")
            (row,) = (await recorded(notes, run)).agent_steps
        assert (row.agent_name, row.step_type, row.model, row.input, row.output) == (
            "planner",
            "plan",
            "m-1",
            "in",
            "out",
        )
        assert (row.input_tokens, row.output_tokens, row.status) == (12, 34, StepStatus.SUCCESS)
        assert row.duration_ms is not None
        assert row.duration_ms >= 0

    asyncio.run(scenario())


def test_what_is_no_text_is_kept_as_its_json(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            async with notes.run("q") as run:
                async with run.step("s", input={"password": "hunter2", "n": 1}) as step:
                    step.output = ["a", float("nan")]
                run.answer("a")
            (row,) = (await recorded(notes, run)).agent_steps
        assert row.input == '{"password":"[redacted:password]","n":1}'
        assert row.output == '["a","NaN"]'

    asyncio.run(scenario())


def test_a_failing_step_is_recorded_without_the_exceptions_words_and_goes_on(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            async with notes.run("q") as run:
                with pytest.raises(ValueError, match="hunter2"):
                    async with run.step("s") as step:
                        step.output = "half"
                        raise ValueError("password is hunter2")
                run.answer("a")
            (row,) = (await recorded(notes, run)).agent_steps
        assert (row.status, row.output, row.error_message) == (
            StepStatus.FAILED,
            "half",
            "the step raised ValueError",
        )

    asyncio.run(scenario())


def test_a_step_with_an_error_message_is_failed(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            async with notes.run("q") as run:
                async with run.step("s") as step:
                    step.error_message = "the model refused"
                with pytest.raises(KeyError):
                    async with run.step("s") as step:
                        step.error_message = "no such table"
                        raise KeyError
                run.answer("a")
            trace = await recorded(notes, run)
        assert [(row.status, row.error_message) for row in trace.agent_steps] == [
            (StepStatus.FAILED, "the model refused"),
            (StepStatus.FAILED, "no such table"),
        ]

    asyncio.run(scenario())


@pytest.mark.parametrize("count", [-1, 1.5, float("nan"), True, "7", 2**70])
def test_a_token_count_that_is_none_is_refused_where_it_is_set(count: object) -> None:
    async def scenario() -> None:
        async with casenotes.open("memory://") as notes, notes.run("q") as run:
            async with run.step("s") as step:
                with pytest.raises(casenotes.InvalidInput, match="input_tokens"):
                    step.input_tokens = count  # type: ignore[assignment]
            run.answer("a")

    asyncio.run(scenario())


def test_a_tool_call_keeps_how_it_ended(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            async with notes.run("q") as run:
                first = await run.tool("a", {"x": [1]}, result={"y": 2}, duration_ms=1.6)
                await run.tool("b", error="timed out", duration_ms=3000)
                await run.tool("c", status="FAILED", result="partial")
                await run.tool("d", status=StepStatus.SUCCESS, error="a warning")
                run.answer("a")
            rows = (await recorded(notes, run)).tool_invocations
        assert first.sequence == 1
        assert [
            (r.tool_name, r.arguments, r.result, r.status, r.error_message, r.duration_ms) for r in rows
        ] == [
            ("a", {"x": [1]}, {"y": 2}, StepStatus.SUCCESS, None, 2),
            ("b", {}, None, StepStatus.FAILED, "timed out", 3000),
            ("c", {}, "partial", StepStatus.FAILED, None, None),
            ("d", {}, None, StepStatus.SUCCESS, "a warning", None),
        ]

    asyncio.run(scenario())


def test_a_tool_call_that_is_wrongly_told_is_refused_and_not_recorded() -> None:
    async def scenario() -> None:
        async with casenotes.open("memory://") as notes:
            async with notes.run("q") as run:
                with pytest.raises(casenotes.InvalidInput, match="status"):
                    await run.tool("a", status="DONE")  # type: ignore[arg-type]
                with pytest.raises(casenotes.InvalidInput, match="duration_ms"):
                    await run.tool("a", duration_ms=float("inf"))
                run.answer("a")
            assert (await recorded(notes, run)).tool_invocations == ()

    asyncio.run(scenario())


def test_a_tool_call_belongs_to_the_step_that_encloses_it(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            async with notes.run("q") as run:
                await run.tool("before")
                async with run.step("outer"):
                    await run.tool("in outer")
                    async with run.step("inner"):
                        await run.tool("in inner")
                    await run.tool("in outer again")
                await run.tool("after")
                run.answer("a")
            trace = await recorded(notes, run)
        assert [(step.sequence, step.agent_name) for step in trace.agent_steps] == [
            (1, "outer"),
            (2, "inner"),
        ]
        assert [tool.step_sequence for tool in trace.tool_invocations] == [None, 1, 2, 1, None]

    asyncio.run(scenario())


def test_steps_of_concurrent_tasks_keep_their_own_tool_calls(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            async with notes.run("q") as run:
                barrier = asyncio.Barrier(8)

                async def worker(name: str) -> None:
                    async with run.step(name):
                        await barrier.wait()
                        await run.tool(name)
                        await barrier.wait()
                        await asyncio.gather(*(run.tool(name) for _ in range(2)))

                await asyncio.gather(*(worker(f"w{n}") for n in range(8)))
                run.answer("a")
            trace = await recorded(notes, run)
        names = {step.sequence: step.agent_name for step in trace.agent_steps}
        assert sorted(names) == list(range(1, 9))
        assert [tool.sequence for tool in trace.tool_invocations] == list(range(1, 25))
        assert all(names[tool.step_sequence or 0] == tool.tool_name for tool in trace.tool_invocations)

    asyncio.run(scenario())


def test_runs_that_are_open_at_once_never_mix(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            async with notes.run("outer", session="s") as outer, outer.step("outer step"):
                async with notes.run("inner", session="s") as inner:
                    await inner.tool("inner tool")
                    await outer.tool("outer tool")
                    inner.answer("inner")
                outer.answer("outer")
            outer_trace, inner_trace = await recorded(notes, outer), await recorded(notes, inner)
        assert [(t.tool_name, t.step_sequence) for t in outer_trace.tool_invocations] == [("outer tool", 1)]
        assert [(t.tool_name, t.step_sequence) for t in inner_trace.tool_invocations] == [
            ("inner tool", None)
        ]
        assert (outer_trace.answer, inner_trace.answer) == ("outer", "inner")
        assert inner_trace.agent_steps == ()

    asyncio.run(scenario())


def test_a_task_that_outlives_its_step_is_in_it_no_more(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            async with notes.run("q") as run:
                ended = asyncio.Event()

                async def late() -> None:
                    await ended.wait()
                    await run.tool("late")

                async with run.step("s"):
                    task = asyncio.create_task(late())
                ended.set()
                await task
                run.answer("a")
            (tool,) = (await recorded(notes, run)).tool_invocations
        assert tool.step_sequence is None

    asyncio.run(scenario())
