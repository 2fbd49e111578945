"""Copies: neither what was given nor what was returned is a way into the store."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from casenotes.core.model import DiagnosisRun, RunMetrics, ToolInvocation
from casenotes.core.text import Json
from casenotes.ports.contract.stage import (
    add_run,
    at,
    case_of,
    committed,
    end,
    end_run,
    on_fresh_ledger,
    only,
    put_cases,
    read_run,
    started,
)
from casenotes.ports.ledger import Ledger, LedgerView


def document() -> dict[str, Json]:
    """JSON that can be changed at two depths."""
    return {"hits": [1, 2], "inner": {"kept": True}}


def scribble(value: Json) -> None:
    """Change a document wherever it can be changed."""
    assert isinstance(value, dict)
    inner, hits = value["inner"], value["hits"]
    assert isinstance(inner, dict)
    assert isinstance(hits, list)
    inner["kept"] = False
    hits.append("scribbled")
    value["scribbled"] = True


def empty(rows: Sequence[object]) -> None:
    """Take every row out of what was returned, if it can be done."""
    if isinstance(rows, list):
        rows.clear()


def scribble_on(run: DiagnosisRun | None, tools: Sequence[ToolInvocation]) -> None:
    assert run is not None
    tool = only(tools)
    for value in (run.self_evaluation, run.orchestration_trace, tool.arguments, tool.result):
        scribble(value)


async def expect_unchanged(view: LedgerView) -> None:
    run = await view.runs.get("s", "r")
    assert run is not None
    tool = only(await view.journal.tools("s", "r"))
    for value in (run.self_evaluation, run.orchestration_trace, tool.arguments, tool.result):
        assert value == document()


class CopiesContract:
    @on_fresh_ledger
    async def test_changing_what_was_given_changes_nothing_stored(self, ledger: Ledger) -> None:
        given = document()
        added = evolve(started("r-2"), self_evaluation=given, orchestration_trace=given)
        await add_run(ledger, added)
        running = await add_run(ledger, started("r"))
        tool = evolve(running.tool_call(1, "logs.search", at(1)), arguments=document(), result=document())
        ended = evolve(
            running.succeed("a", at(2), RunMetrics(0, 1)),
            self_evaluation=document(),
            orchestration_trace=document(),
        )
        async with committed(ledger) as work:
            await work.journal.add_tool(tool)
            await end(work, ended)
            for value in (
                given,
                tool.arguments,
                tool.result,
                ended.self_evaluation,
                ended.orchestration_trace,
            ):
                scribble(value)
        async with ledger.view() as view:
            stored = only(await view.journal.tools("s", "r"))
        assert (stored.arguments, stored.result) == (document(), document())
        for run_id in ("r", "r-2"):
            read = await read_run(ledger, "s", run_id)
            assert (read.self_evaluation, read.orchestration_trace) == (document(), document())

    @on_fresh_ledger
    async def test_changing_what_was_returned_changes_nothing_stored(self, ledger: Ledger) -> None:
        running = await add_run(ledger, started())
        async with committed(ledger) as work:
            tool = running.tool_call(1, "logs.search", at(1), arguments=document(), result=document())
            await work.journal.add_tool(tool)
        await end_run(
            ledger,
            running.succeed(
                "a",
                at(2),
                RunMetrics(0, 1),
                self_evaluation=document(),
                orchestration_trace=document(),
            ),
        )
        async with ledger.view() as view:
            scribble_on(await view.runs.get("s", "r"), await view.journal.tools("s", "r"))
            scribble_on(await view.runs.latest("s"), await view.journal.tools("s", "r"))
            await expect_unchanged(view)
        async with ledger.work() as work:
            scribble_on(await work.runs.lock("s", "r"), await work.journal.tools("s", "r"))
            scribble_on(await work.runs.lock_latest("s"), await work.journal.tools("s", "r"))
            await expect_unchanged(work)
            await work.commit()
        async with ledger.view() as view:
            await expect_unchanged(view)

    @on_fresh_ledger
    async def test_changing_the_run_that_add_returned_changes_nothing_stored(self, ledger: Ledger) -> None:
        stored = await add_run(
            ledger, evolve(started(), self_evaluation=document(), orchestration_trace=document())
        )
        scribble(stored.self_evaluation)
        scribble(stored.orchestration_trace)
        read = await read_run(ledger, "s", "r")
        assert (read.self_evaluation, read.orchestration_trace) == (document(), document())

    @on_fresh_ledger
    async def test_emptying_a_returned_list_empties_nothing_stored(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        await put_cases(ledger, case_of("r"))
        async with committed(ledger) as work:
            await work.journal.add_step(run.step(1, "planner", at(1)))
            await work.journal.add_tool(run.tool_call(1, "logs.search", at(1)))
        async with ledger.view() as view:
            for _ in range(2):
                for rows in (
                    await view.sessions.page(query=None, before=None, limit=9),
                    await view.runs.page("s", before=None, limit=9),
                    await view.runs.expired(now=at(900), limit=9),
                    await view.journal.steps("s", "r"),
                    await view.journal.tools("s", "r"),
                    await view.cases.page(query=None, before=None, limit=9),
                ):
                    assert len(rows) == 1
                    empty(rows)
