"""Isolation: nothing of one run or session is ever seen in another, however alike their ids are."""

from __future__ import annotations

import pytest

from casenotes.core.errors import RunNotFound
from casenotes.core.model import DiagnosisRun
from casenotes.ports.contract.journal import write_both
from casenotes.ports.contract.stage import (
    add_run,
    add_runs,
    committed,
    on_fresh_ledger,
    picture,
    started,
    useful,
)
from casenotes.ports.ledger import Ledger

ALIKE_IDS = (
    "a",
    "A",
    " a",
    "a ",
    "a\t",
    "a\n",
    "a%20",
    "a%",
    "a_",
    "a/b",
    "a%2Fb",
    "%",
    "_",
    "'; DROP TABLE diagnosis_run; --",
    "\\",
    '"a"',
    "1",
    "01",
    "1.0",
    "null",
    "None",
    "é",
    "e\N{COMBINING ACUTE ACCENT}",
    "É",
    "ß",
    "ss",
    "ſ",  # noqa: RUF001
    "s",
    "İ",
    "i",
    "ı",  # noqa: RUF001
    "障害",
    "ｓ",  # noqa: RUF001
    "\N{CYRILLIC SMALL LETTER A}",
    "\N{ZERO WIDTH SPACE}a",
    "\U0001f680",
    "x" * 128,
    "x" * 127,
)
"""Ids that some store or other trims, folds, normalises, matches as a pattern or reads as a number."""


def expected(many: int, run: DiagnosisRun) -> list[tuple[int, str]]:
    """Sequence and content of so many entries of the run, as ``write_both`` writes them."""
    return [(sequence, run.run_id) for sequence in range(1, many + 1)]


class IsolationContract:
    @on_fresh_ledger
    async def test_run_of_another_session_is_not_there(self, ledger: Ledger) -> None:
        await add_runs(ledger, started("r", "s"), started("r-t", "t"))
        async with ledger.work() as work:
            assert await work.runs.get("t", "r") is None
            assert await work.runs.lock("t", "r") is None
            assert await work.runs.lock_to_end("t", "r") is None

    @on_fresh_ledger
    async def test_latest_run_is_looked_for_in_one_session_only(self, ledger: Ledger) -> None:
        await add_runs(ledger, started("r", "s", seconds=1), started("r-t", "t", seconds=9))
        async with ledger.work() as work:
            for latest in (await work.runs.latest("s"), await work.runs.lock_latest("s")):
                assert latest is not None
                assert latest.run_id == "r"

    @on_fresh_ledger
    async def test_steps_and_tool_calls_of_one_run_are_not_among_those_of_another(
        self, ledger: Ledger
    ) -> None:
        runs = await add_runs(ledger, started("r-1", "s"), started("r-2", "s"), started("r-3", "t"))
        async with committed(ledger) as work:
            for sequence in (1, 2):
                for run in runs:
                    await write_both(work, run, sequence)
        async with ledger.view() as view:
            for run in runs:
                steps = await view.journal.steps(run.session_id, run.run_id)
                tools = await view.journal.tools(run.session_id, run.run_id)
                assert [step.output for step in steps] == [run.run_id] * 2
                assert [tool.result for tool in tools] == [run.run_id] * 2
                owners = {(row.session_id, row.run_id) for rows in (steps, tools) for row in rows}
                assert owners == {(run.session_id, run.run_id)}

    @on_fresh_ledger
    async def test_entries_are_this_runs_steps_and_tool_calls_only(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, started("r-1", "s"), started("r-2", "s"), started("r-3", "t"))
        async with committed(ledger) as work:
            for many, run in enumerate(runs, 1):
                for sequence in range(1, many + 1):
                    await write_both(work, run, sequence)
        async with ledger.view() as view:
            for many, run in enumerate(runs, 1):
                key = (run.session_id, run.run_id)
                steps, tools = await view.journal.entries(*key)
                assert [(step.sequence, step.output) for step in steps] == expected(many, run)
                assert [(tool.sequence, tool.result) for tool in tools] == expected(many, run)
                assert list(steps) == list(await view.journal.steps(*key))
                assert list(tools) == list(await view.journal.tools(*key))

    @on_fresh_ledger
    async def test_journal_asked_for_under_another_session_is_empty(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started("r", "s"))
        await add_run(ledger, started("r-t", "t"))
        async with committed(ledger) as work:
            await write_both(work, run, 1)
        async with ledger.view() as view:
            assert list(await view.journal.steps("t", "r")) == []
            assert list(await view.journal.tools("t", "r")) == []
            assert tuple(map(list, await view.journal.entries("t", "r"))) == ([], [])

    @on_fresh_ledger
    async def test_feedback_does_not_reach_a_run_of_another_session(self, ledger: Ledger) -> None:
        await add_runs(ledger, started("r", "s"), started("r-t", "t"))
        before = await picture(ledger, "s"), await picture(ledger, "t")
        with pytest.raises(RunNotFound):
            async with committed(ledger) as work:
                await work.runs.set_feedback("t", "r", useful())
        assert (await picture(ledger, "s"), await picture(ledger, "t")) == before

    @on_fresh_ledger
    async def test_session_ids_are_compared_exactly(self, ledger: Ledger) -> None:
        await add_runs(ledger, *(started(f"r-{n}", session_id) for n, session_id in enumerate(ALIKE_IDS)))
        async with ledger.work() as work:
            for n, session_id in enumerate(ALIKE_IDS):
                session = await work.sessions.get(session_id)
                assert session is not None
                assert session.session_id == session_id
                page = await work.runs.page(session_id, before=None, limit=99)
                assert [(run.session_id, run.run_id) for run in page] == [(session_id, f"r-{n}")]
                latest = await work.runs.lock_latest(session_id)
                assert latest is not None
                assert latest.run_id == f"r-{n}"
            for absent in ("", "B", "a  ", "%a", "X" * 128, "x" * 129):
                assert await work.sessions.get(absent) is None
                assert await work.runs.latest(absent) is None

    @on_fresh_ledger
    async def test_run_ids_are_compared_exactly(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, *(started(run_id, query=f"<{run_id}>") for run_id in ALIKE_IDS))
        async with committed(ledger) as work:
            for run in runs:
                await write_both(work, run, 1)
        async with ledger.view() as view:
            for run in runs:
                assert await view.runs.get("s", run.run_id) == run
                assert [s.output for s in await view.journal.steps("s", run.run_id)] == [run.run_id]
                steps, tools = await view.journal.entries("s", run.run_id)
                assert ([s.output for s in steps], [t.result for t in tools]) == ([run.run_id], [run.run_id])
            assert await view.runs.get("s", "B") is None
