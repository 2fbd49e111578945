"""The journal: the steps and tool calls of a run, in their order, each once."""

from __future__ import annotations

import pytest
from attrs import evolve

from casenotes.core.errors import RunNotFound
from casenotes.core.model import DiagnosisRun
from casenotes.core.words import StepStatus
from casenotes.ports.contract.stage import (
    add_run,
    add_runs,
    at,
    committed,
    on_fresh_ledger,
    picture,
    started,
)
from casenotes.ports.ledger import Ledger, UnitOfWork

ELSEWHERE = pytest.mark.parametrize(
    ("session_id", "run_id"), [("s", "unknown"), ("t", "r"), ("unknown", "r")]
)


class JournalContract:
    @on_fresh_ledger
    async def test_steps_come_by_sequence_however_they_were_stored(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        for sequence in (2, 10, 1, 3):
            async with committed(ledger) as work:
                await work.journal.add_step(run.step(sequence, "executor", at(-sequence)))
        async with ledger.view() as view:
            assert [step.sequence for step in await view.journal.steps("s", "r")] == [1, 2, 3, 10]

    @on_fresh_ledger
    async def test_tool_calls_come_by_sequence_however_they_were_stored(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        for sequence in (2, 10, 1, 3):
            async with committed(ledger) as work:
                await work.journal.add_tool(run.tool_call(sequence, "logs.search", at(-sequence)))
        async with ledger.view() as view:
            assert [tool.sequence for tool in await view.journal.tools("s", "r")] == [1, 2, 3, 10]

    @on_fresh_ledger
    async def test_step_is_read_back_equal(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        bare = run.step(1, "planner", at(1))
        full = run.step(
            2,
            "executor",
            at(2),
            step_type="tool",
            model="m-1",
            input="in",
            output="out",
            status=StepStatus.FAILED,
            error_message="no",
            input_tokens=11,
            output_tokens=12,
            duration_ms=13,
        )
        async with committed(ledger) as work:
            await work.journal.add_step(bare)
            await work.journal.add_step(full)
        async with ledger.view() as view:
            stored = await view.journal.steps("s", "r")
        assert [evolve(step, id=None) for step in stored] == [bare, full]
        assert stored[1].status is StepStatus.FAILED
        assert len({step.id for step in stored if isinstance(step.id, int)}) == 2

    @on_fresh_ledger
    async def test_tool_call_is_read_back_equal(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        bare = run.tool_call(1, "alerts.firing", at(1))
        full = run.tool_call(
            2,
            "logs.search",
            at(2),
            arguments={"q": "timeout", "limit": 5},
            result=["line"] * 20_000,
            status=StepStatus.FAILED,
            error_message="no",
            step_sequence=1,
            duration_ms=13,
        )
        assert full.result_truncated, "the stage means to store a truncated result"
        async with committed(ledger) as work:
            await work.journal.add_tool(bare)
            await work.journal.add_tool(full)
        async with ledger.view() as view:
            stored = await view.journal.tools("s", "r")
        assert [evolve(tool, id=None) for tool in stored] == [bare, full]
        assert stored[1].status is StepStatus.FAILED
        assert len({tool.id for tool in stored if isinstance(tool.id, int)}) == 2

    @on_fresh_ledger
    async def test_second_step_with_a_sequence_is_refused_and_nothing_written(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        async with committed(ledger) as work:
            await work.journal.add_step(run.step(1, "planner", at(1)))
        before = await picture(ledger)
        with pytest.raises(ValueError):
            async with committed(ledger) as work:
                await work.journal.add_step(run.step(1, "impostor", at(2)))
        assert await picture(ledger) == before

    @on_fresh_ledger
    async def test_second_tool_call_with_a_sequence_is_refused_and_nothing_written(
        self, ledger: Ledger
    ) -> None:
        run = await add_run(ledger, started())
        async with committed(ledger) as work:
            await work.journal.add_tool(run.tool_call(1, "logs.search", at(1)))
        before = await picture(ledger)
        with pytest.raises(ValueError):
            async with committed(ledger) as work:
                await work.journal.add_tool(run.tool_call(1, "impostor", at(2)))
        assert await picture(ledger) == before

    @on_fresh_ledger
    async def test_runs_steps_and_tool_calls_each_count_their_own_sequence(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, started("r-1"), started("r-2"), started("r-3", "t"))
        async with committed(ledger) as work:
            for run in runs:
                await write_both(work, run, 1)
        async with ledger.view() as view:
            for run in runs:
                entries = await view.journal.entries(run.session_id, run.run_id)
                assert [[entry.sequence for entry in kind] for kind in entries] == [[1], [1]]

    @ELSEWHERE
    @on_fresh_ledger
    async def test_step_of_a_run_that_is_not_there_raises_and_nothing_is_written(
        self, ledger: Ledger, session_id: str, run_id: str
    ) -> None:
        [run, _] = await add_runs(ledger, started("r", "s"), started("r-t", "t"))
        before = await picture(ledger, "s"), await picture(ledger, "t")
        with pytest.raises(RunNotFound):
            async with committed(ledger) as work:
                stray = evolve(run, session_id=session_id, run_id=run_id).step(1, "planner", at(1))
                await work.journal.add_step(stray)
        assert (await picture(ledger, "s"), await picture(ledger, "t")) == before

    @ELSEWHERE
    @on_fresh_ledger
    async def test_tool_call_of_a_run_that_is_not_there_raises_and_nothing_is_written(
        self, ledger: Ledger, session_id: str, run_id: str
    ) -> None:
        [run, _] = await add_runs(ledger, started("r", "s"), started("r-t", "t"))
        before = await picture(ledger, "s"), await picture(ledger, "t")
        with pytest.raises(RunNotFound):
            async with committed(ledger) as work:
                stray = evolve(run, session_id=session_id, run_id=run_id).tool_call(1, "logs.search", at(1))
                await work.journal.add_tool(stray)
        assert (await picture(ledger, "s"), await picture(ledger, "t")) == before

    @on_fresh_ledger
    async def test_entries_are_the_rows_and_not_what_the_run_says(self, ledger: Ledger) -> None:
        run = await add_run(ledger, evolve(started(), step_count=7, tool_call_count=8))
        async with committed(ledger) as work:
            assert tuple(map(list, await work.journal.entries("s", "r"))) == ([], [])
            await write_both(work, run, 9)
            await work.journal.add_step(run.step(5, "planner", at(1)))
            written = await work.journal.entries("s", "r")
        assert [[entry.sequence for entry in kind] for kind in written] == [[5, 9], [9]]
        async with ledger.view() as view:
            stored = await view.journal.entries("s", "r")
        assert tuple(map(list, stored)) == tuple(map(list, written))

    @on_fresh_ledger
    async def test_entries_are_whole_as_steps_and_tools_give_them(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        step = evolve(
            run.step(1, "planner", at(1), model="m", input="i", output="o"),
            status=StepStatus.FAILED,
            error_message="no route",
            duration_ms=7,
        )
        tool = evolve(
            run.tool_call(1, "logs", at(3), arguments={"a": [1]}, result="[1]", step_sequence=2),
            status=StepStatus.FAILED,
            error_message="no route",
            duration_ms=7,
        )
        async with committed(ledger) as work:
            await work.journal.add_step(step)
            await work.journal.add_step(run.step(2, "executor", at(2)))
            await work.journal.add_tool(tool)
            await work.journal.add_tool(run.tool_call(2, "logs", at(4), result=[1]))
        async with ledger.view() as view:
            steps, tools = await view.journal.entries("s", "r")
            assert list(steps) == list(await view.journal.steps("s", "r"))
            assert list(tools) == list(await view.journal.tools("s", "r"))
        assert [evolve(entry, id=None) for entry in (steps[0], tools[0])] == [step, tool]
        assert [tool.result for tool in tools] == ["[1]", [1]]

    @on_fresh_ledger
    async def test_journal_of_an_unknown_run_is_empty(self, ledger: Ledger) -> None:
        async with ledger.view() as view:
            assert list(await view.journal.steps("s", "r")) == []
            assert list(await view.journal.tools("s", "r")) == []
            assert tuple(map(list, await view.journal.entries("s", "r"))) == ([], [])


async def write_both(work: UnitOfWork, run: DiagnosisRun, sequence: int) -> None:
    """A step and a tool call that name their run in what they hold."""
    await work.journal.add_step(run.step(sequence, "executor", at(sequence), output=run.run_id))
    await work.journal.add_tool(run.tool_call(sequence, "logs.search", at(sequence), result=run.run_id))
