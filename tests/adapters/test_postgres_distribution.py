"""Every statement on runs, steps and tool calls says of which session, so that they can be distributed by it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from adapters.every_statement import methods_of_work, use_work
from adapters.postgres_scene import on_ledger
from support.postgres import PostgresDatabases, rows

from casenotes.adapters.sql.ledger import SqlLedger

GUIDE = Path(__file__).parents[2] / "docs" / "scale.md"
DISTRIBUTED = ("diagnosis_run", "agent_step", "tool_invocation")

EXCEPTIONS = {
    "runs.expired": "asks all sessions for leases that are over, some times in a lease's period, by a partial index",
    "erase with idle_since": "looks for a running run of the session: joined to it by the session id",
    "sessions.idle": "looks for running runs of the sessions on the page: joined to them by the session id",
    "sessions.page": "counts the runs of the sessions on the page: joined to their sessions by the session id",
    "sessions.page with query": "looks for a text in the questions of each session: joined to it by the session id",
}
"""Statements that name no single session, and why they may."""


def carries_the_session(statement: str, table: str) -> bool:
    """Whether each mention of a table in a statement goes with its session id: inserted, or compared with a value."""
    if re.match(rf"INSERT INTO {table} \([^)]*\bsession_id\b", statement):
        return True
    mentions = len(re.findall(rf"(?:FROM|JOIN|UPDATE|INTO) {table}\b", statement))
    equal = rf"{table}\.session_id = \$\d"
    listed = rf"\({table}\.session_id, {table}\.run_id\) IN \(\(\$\d"
    return 0 < mentions <= len(re.findall(f"{equal}|{listed}", statement))


def test_every_statement_on_runs_steps_and_tool_calls_carries_the_session_id(
    postgres: PostgresDatabases,
) -> None:
    async def scene(ledger: SqlLedger) -> None:
        statements = await use_work(ledger)
        assert statements.called == methods_of_work(), "every method is among those looked at"
        excepted = set[str]()
        for sent in statements.sent:
            method, statement = sent.method, sent.sql
            for table in DISTRIBUTED:
                if not re.search(rf"\b{table}\b", statement) or carries_the_session(statement, table):
                    continue
                assert method in EXCEPTIONS, f"{method}: {statement}"
                excepted.add(method)
        assert excepted == EXCEPTIONS.keys(), "no exception is left that nobody needs"

    with postgres.copy("head") as url:
        on_ledger(url, scene)


def test_ledger_works_on_the_constraints_that_distributed_tables_can_have(
    postgres: PostgresDatabases,
) -> None:
    document = GUIDE.read_text("utf-8").partition("```sql\n")[2].partition("```")[0]
    statements = [line.strip() for line in re.sub("--.*", "", document).split(";")]
    changes = [statement for statement in statements if statement and "SELECT" not in statement]
    assert len(changes) == 4

    async def scene(ledger: SqlLedger) -> None:
        await use_work(ledger)

    async def change(url: str) -> None:
        for statement in changes:
            await rows(url, statement)

    with postgres.copy("head") as url:
        asyncio.run(change(url))
        on_ledger(url, scene)


def test_statements_that_carry_no_session_are_found_out() -> None:
    sound = "SELECT * FROM diagnosis_run WHERE diagnosis_run.session_id = $1::TEXT AND run_id = $2"
    assert carries_the_session(sound, "diagnosis_run")
    for wrong in (
        "SELECT * FROM diagnosis_run WHERE diagnosis_run.run_id = $1",
        "UPDATE diagnosis_run SET session_id = $1 WHERE diagnosis_run.run_id = $2",
        "INSERT INTO diagnosis_run (run_id, query) VALUES ($1, $2)",
        f"{sound} AND run_id IN (SELECT run_id FROM diagnosis_run WHERE query = $3)",
    ):
        assert not carries_the_session(wrong, "diagnosis_run"), wrong
