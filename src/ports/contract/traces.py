"""Traces: what is stored of one run, read at once."""

from __future__ import annotations

import pytest

from casenotes.core.views import StoredTrace
from casenotes.ports.contract.commits import entries
from casenotes.ports.contract.stage import (
    add_runs,
    add_sessions,
    answered,
    chat_session,
    end_run,
    on_fresh_ledger,
    started,
)
from casenotes.ports.ledger import Ledger


class TracesContract:
    @on_fresh_ledger
    async def test_trace_is_what_the_parts_of_a_view_give(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, started("r-1"), started("r-2", seconds=1), started("r-t", "t"))
        for run in runs:
            for entry in reversed(entries(run, 3)):
                await ledger.record(entry)
        await end_run(ledger, answered(runs[0]))
        for session_id, run_id in (("s", "r-1"), ("s", "r-2"), ("s", None), ("t", None)):
            trace = await ledger.trace(session_id, run_id)
            async with ledger.view() as view:
                latest = await view.runs.latest(session_id)
                asked = latest if run_id is None else await view.runs.get(session_id, run_id)
                assert asked is not None
                steps = await view.journal.steps(session_id, asked.run_id)
                tools = await view.journal.tools(session_id, asked.run_id)
                session = await view.sessions.get(session_id)
            assert trace == StoredTrace(session, asked, tuple(steps), tuple(tools))
            assert len(steps) == len(tools) == 3

    @pytest.mark.parametrize(
        ("session_id", "run_id"), [("s", "unknown"), ("t", "r"), ("unknown", "r"), ("unknown", None)]
    )
    @on_fresh_ledger
    async def test_trace_of_a_run_that_is_not_there_has_none(
        self, ledger: Ledger, session_id: str, run_id: str | None
    ) -> None:
        await add_runs(ledger, started("r", "s"), started("r-t", "t"))
        trace = await ledger.trace(session_id, run_id)
        assert (trace.run, trace.agent_steps, trace.tool_invocations) == (None, (), ())
        assert (trace.session is None) == (session_id == "unknown")

    @on_fresh_ledger
    async def test_trace_of_a_session_without_runs_is_its_row(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "s")
        assert await ledger.trace("s") == StoredTrace(chat_session("s"), None)
