"""Every statement on runs, steps and tool calls says of which session, so that they can be distributed by it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from adapters.postgres_scene import on_ledger
from attrs import define, field
from support.postgres import PostgresDatabases, rows

from casenotes.adapters.sql.cases import CasesWriter
from casenotes.adapters.sql.history import HistoryWriter
from casenotes.adapters.sql.journal import JournalWriter
from casenotes.adapters.sql.keys import KeysWriter
from casenotes.adapters.sql.ledger import SqlLedger, SqlUnitOfWork, SqlView
from casenotes.adapters.sql.runs import RunsWriter
from casenotes.adapters.sql.sessions import SessionsWriter
from casenotes.core.errors import InvalidTransition, RunAlreadyExists, RunNotFound
from casenotes.core.model import Feedback, IdempotencyKey
from casenotes.ports.contract.stage import answered, at, case_of, chat_session, started

GUIDE = Path(__file__).parents[2] / "docs" / "scale.md"
DISTRIBUTED = ("diagnosis_run", "agent_step", "tool_invocation")

EXCEPTIONS = {
    "runs.expired": "asks all sessions for leases that are over, some times in a lease's period, by a partial index",
    "sessions.page": "counts the runs of the sessions on the page: joined to their sessions by the session id",
}
"""Statements that name no single session, and why they may."""

WRITERS = {
    "sessions": SessionsWriter,
    "runs": RunsWriter,
    "journal": JournalWriter,
    "cases": CasesWriter,
    "history": HistoryWriter,
    "keys": KeysWriter,
}


@define
class Statements:
    """What is sent to the server, by the method that sent it."""

    ledger: SqlLedger
    sent: list[tuple[str, str]] = field(factory=list)
    called: set[str] = field(factory=set)
    _method: str = "?"

    def listen(self) -> None:
        @sa.event.listens_for(self.ledger.writing.sync_engine, "before_cursor_execute")
        def _note(_c: object, _d: object, statement: str, *_: object) -> None:
            self.sent.append((self._method, " ".join(statement.split())))

    async def call(self, work: SqlUnitOfWork | SqlView, method: str, *given: Any, **named: Any) -> Any:
        """Call a method, such as ``runs.get``, and note what it sends."""
        self._method = method
        self.called.add(method)
        target: Any = work
        for part in method.split("."):
            target = getattr(target, part)
        return await target(*given, **named)

    async def refused(self, error: type[Exception], work: SqlUnitOfWork, method: str, *given: Any) -> None:
        try:
            await self.call(work, method, *given)
        except error:
            return
        raise AssertionError(f"{method} was not refused")


def all_methods() -> set[str]:
    """The methods of a unit of work, and of what it gives."""
    given = {
        f"{name}.{method}" for name, writer in WRITERS.items() for method in dir(writer) if method[0] != "_"
    }
    return given | {"erase"}


async def use_everything(ledger: SqlLedger) -> Statements:
    """Call every method, by each of its ways."""
    statements = Statements(ledger)
    statements.listen()
    call = statements.call
    run, long_answer = started("r"), "x" + " " * 5000 + "y"
    async with ledger.work() as work:
        await call(work, "sessions.ensure", chat_session("s"))
        await call(work, "sessions.touch", "s", at=at(), expires_at=None, answered=True)
        await call(work, "sessions.get", "s")
        await call(work, "runs.add", run)
        await statements.refused(RunAlreadyExists, work, "runs.add", run)
        await call(work, "runs.get", "s", "r")
        await call(work, "runs.lock", "s", "r")
        await call(work, "runs.latest", "s")
        await call(work, "runs.lock_latest", "s")
        await call(work, "runs.renew", [("s", "r"), ("t", "q")], owner="alpha", until=at(90))
        await call(work, "runs.expired", now=at(900), limit=9)
        await call(work, "journal.add_step", run.step(1, "planner", at()))
        await call(work, "journal.add_tool", run.tool_call(1, "logs.search", at()))
        await call(work, "journal.steps", "s", "r")
        await call(work, "journal.tools", "s", "r")
        await call(work, "journal.count", "s", "r")
        await call(work, "runs.set_context_degraded", "s", "r")
        await call(work, "runs.set_feedback", "s", "r", Feedback("useful", None, at(2)))
        await call(work, "runs.end", answered(run, long_answer))
        await statements.refused(InvalidTransition, work, "runs.end", answered(run))
        await statements.refused(InvalidTransition, work, "journal.add_step", run.step(2, "planner", at()))
        await statements.refused(RunNotFound, work, "runs.set_context_degraded", "t", "r")
        await call(work, "runs.add", started("r-2", seconds=1))
        for before in (None, "r-2"):
            await call(work, "runs.page", "s", before=before, limit=9)
        for query in (None, "q"):
            for page, last in (("sessions.page", "s"), ("cases.page", 99)):
                for position in (None, last):
                    await call(work, page, query=query, before=position, limit=9)
        await call(work, "cases.put", case_of("r"))
        await call(work, "cases.of_run", "r")
        await call(work, "cases.withdraw", "r", at=at())
        await call(work, "keys.claim", IdempotencyKey("k", "d", "s", "r", at()))
        await call(work, "keys.claim", IdempotencyKey("k", "d", "s", "r", at()))
        await call(work, "history.get", "s")
        await use_history(ledger, statements, work)
        await call(work, "erase", "s")
    return statements


async def use_history(ledger: SqlLedger, statements: Statements, work: SqlUnitOfWork) -> None:
    insert = sa.text(
        "insert into diagnosis_session (session_id, created_at, updated_at) values ('old', now(), now())"
    )
    await work.sessions._transaction.run(insert)
    await statements.call(work, "history.trace", "old")
    await statements.call(work, "history.set_feedback", "old", Feedback("useful", None, at()))


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
        statements = await use_everything(ledger)
        assert statements.called == all_methods(), "every method is among those looked at"
        excepted = set[str]()
        for method, statement in statements.sent:
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
    assert len(changes) == 7

    async def scene(ledger: SqlLedger) -> None:
        await use_everything(ledger)

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
