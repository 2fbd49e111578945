"""Migration, seen through HTTP: the scenarios of the spec, one test each."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support import historical
from support.service import Backend, Running

from casenotes.adapters import migration


def old_system(file: Path, session_id: str = "s-old") -> None:
    """A database as the old system left it, with one diagnosis."""
    historical.make_historical(file, with_rows=False)
    historical.insert_session(
        file, session_id, query="old question", answer="old answer", agent_flow="OLD_FLOW", feedback="useful"
    )
    historical.insert_step(file, session_id, step_number=1, agent_name="planner", status="SUCCESS")
    historical.insert_tool(
        file, session_id, step_number=1, tool_name="logs", result="old result", status="SUCCESS"
    )


def test_historical_session_gets_compatibility_run(sqlite: Backend) -> None:
    assert sqlite.database is not None
    old_system(sqlite.database)

    async def scenario(here: Running) -> None:
        (row,) = (await here.client.runs("s-old")).data
        assert (row["query"], row["answerPreview"], row["agentFlow"]) == (
            "old question",
            "old answer",
            "OLD_FLOW",
        )
        for trace in (await here.client.trace("s-old"), await here.client.trace("s-old", row["runId"])):
            assert trace.data["runId"] == row["runId"] and trace.data["answer"] == "old answer"
            assert [step["agentName"] for step in trace.data["agentSteps"]] == ["planner"]
            assert [tool["result"] for tool in trace.data["toolInvocations"]] == ["old result"]
        for table in ("agent_step", "tool_invocation"):
            assert here.rows(f"select run_id, session_id from {table}") == [
                {"run_id": row["runId"], "session_id": "s-old"}
            ]

    sqlite.run(scenario)


def test_old_table_is_retained(sqlite: Backend) -> None:
    assert sqlite.database is not None
    old_system(sqlite.database)
    before = historical.rows(sqlite.database, "select * from diagnosis_session")

    async def scenario(here: Running) -> None:
        made = await here.client.ask("a new question", "s-old")
        fresh = await here.client.ask("another", "s-new")
        assert here.rows("select * from diagnosis_session") == before
        stored = {row["run_id"] for row in here.rows("select run_id from diagnosis_run")}
        assert {made["runId"], fresh["runId"]} < stored
        assert {row["session_id"] for row in here.rows("select session_id from chat_session")} >= {
            "s-old",
            "s-new",
        }
        assert [run["query"] for run in (await here.client.runs("s-old")).data] == [
            "a new question",
            "old question",
        ]

    sqlite.run(scenario)


def test_migration_is_applied(tmp_path: Path) -> None:
    """Stage 3 adds the one nullable column and changes nothing else."""
    file = tmp_path / "ledger.db"
    old_system(file)
    asyncio.run(migration.upgrade(historical.url(file), "0002"))
    columns, rows = historical.columns(file), historical.rows(file, "select * from diagnosis_run")
    asyncio.run(migration.upgrade(historical.url(file), "0003"))
    after = historical.columns(file)
    added = after["diagnosis_run"].pop("orchestration_trace")
    assert added[1] == 0 and added[2] is None
    assert after == columns
    stored = historical.rows(file, "select * from diagnosis_run")
    assert stored == [{**row, "orchestration_trace": None} for row in rows]
