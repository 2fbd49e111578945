"""Every statement that a ledger in SQL sends, with the method that sends it: all are called, by each of their ways."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from attrs import define, field, frozen
from support.statements import heard_in_full

from casenotes.adapters.sql.cases import CasesWriter
from casenotes.adapters.sql.history import HistoryWriter
from casenotes.adapters.sql.isolation import SqlIsolationSource
from casenotes.adapters.sql.journal import JournalWriter
from casenotes.adapters.sql.keys import KeysWriter
from casenotes.adapters.sql.ledger import SqlLedger, SqlUnitOfWork
from casenotes.adapters.sql.runs import RunsWriter
from casenotes.adapters.sql.sessions import SessionsWriter
from casenotes.adapters.sql.verification import SqlVerificationSource
from casenotes.core.errors import InvalidTransition, RunAlreadyExists, RunNotFound
from casenotes.core.model import DiagnosisRun, Feedback, IdempotencyKey
from casenotes.core.seal import seal
from casenotes.ports.contract.ends import succeeding
from casenotes.ports.contract.stage import answered, at, case_of, chat_session, end, started
from casenotes.ports.ledger import UnitOfWork

WRITERS = {
    "sessions": SessionsWriter,
    "runs": RunsWriter,
    "journal": JournalWriter,
    "cases": CasesWriter,
    "history": HistoryWriter,
    "keys": KeysWriter,
}
OUTSIDE = {
    "ledger": SqlLedger,
    "verification": SqlVerificationSource,
    "isolation": SqlIsolationSource,
}
IN_ORDER = {
    (
        "sessions.page",
        "chat_session",
    ): "the latest active are the first of the index, and the page ends there",
    (
        "cases.page",
        "case_library",
    ): "the newest active have the highest ids; only withdrawn ones are passed over",
}
"""Statements that read an index or a key from its end, and no more than a page of it; with them, the table."""

WHOLE = {
    ("sessions.page with query", "chat_session"): "looks for a text anywhere in ids and questions",
    ("sessions.page with query", "diagnosis_run"): "looks for a text anywhere in ids and questions",
    ("cases.page with query", "case_library"): "looks for a text anywhere in questions and answers",
}
"""Statements that may have to look at all rows."""

SWEEPS = ("verification.session_ids", "isolation.sessions")
"""Methods that go through the whole record, page by page."""
_VARIANTS = ("query", "idle_since")
TOGETHER = 16
"""Entries that are recorded at once."""


@frozen
class Sent:
    """A statement and its arguments as the driver was given them, and the method that sent it.

    A method with an argument by which it sends another statement is named so: ``erase with idle_since``.
    """

    method: str
    sql: str
    arguments: Sequence[Any] = ()

    @property
    def reads_or_writes(self) -> bool:
        """Whether it is not only the beginning or the end of a transaction."""
        return self.sql.startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "WITH"))


@define
class Statements:
    """What is sent to the database, by the method that sent it."""

    sent: list[Sent] = field(factory=list)
    called: set[str] = field(factory=set)
    _method: str = "?"

    def note(self, statement: str, arguments: Sequence[Any]) -> None:
        self.sent.append(Sent(self._method, statement, arguments))

    def reading_and_writing(self) -> Sequence[Sent]:
        return [sent for sent in self.sent if sent.reads_or_writes]

    def begin(self, method: str, *with_: str) -> None:
        """What is sent from now on is sent by this method."""
        self._method = " with ".join((method, *with_))
        self.called.add(method)

    async def call(self, target: object, method: str, *given: Any, **named: Any) -> Any:
        """Call a method, such as ``runs.get``, and note what it sends."""
        self.begin(method, *(name for name in _VARIANTS if named.get(name) is not None))
        called: Any = target
        for part in method.removeprefix("ledger.").split("."):
            called = getattr(called, part)
        return await called(*given, **named)

    async def refused(
        self, error: type[Exception], target: object, method: str, *given: Any, **named: Any
    ) -> None:
        try:
            await self.call(target, method, *given, **named)
        except error:
            return
        raise AssertionError(f"{method} was not refused")


def methods_of_work() -> set[str]:
    """The methods of a unit of work, and of what it gives."""
    return _methods(WRITERS) | {"erase"}


def methods_outside() -> set[str]:
    """The methods that begin and end a transaction of their own, or need none."""
    return _methods(OUTSIDE) - {"ledger.work", "ledger.view", "ledger.close"}


def _methods(classes: Mapping[str, type]) -> set[str]:
    return {
        f"{name}.{method}"
        for name, kind in classes.items()
        for method, called in inspect.getmembers(kind, inspect.isfunction)
        if method[0] != "_"
    }


async def use_work(ledger: SqlLedger) -> Statements:
    """Call every method of a unit of work; nothing of it is committed."""
    statements = Statements()
    with heard_in_full(statements.note):
        async with ledger.work() as work:
            await _use_work(statements, work)
    return statements


async def _use_work(statements: Statements, work: SqlUnitOfWork) -> None:
    call = statements.call
    run, long_answer = started("r"), "x" + " " * 5000 + "y"
    await call(work, "sessions.ensure", chat_session("s"))
    await call(work, "sessions.use", chat_session("s", seconds=1))
    await call(work, "sessions.get", "s")
    await call(work, "runs.add", run)
    await statements.refused(RunAlreadyExists, work, "runs.add", run)
    await call(work, "runs.get", "s", "r")
    await call(work, "runs.lock", "s", "r")
    await call(work, "runs.lock_to_end", "s", "r")
    await call(work, "runs.latest", "s")
    await call(work, "runs.lock_latest", "s")
    await call(work, "runs.renew", [("s", "r"), ("t", "q")], owner="alpha", until=at(90))
    await call(work, "runs.expired", now=at(900), limit=9)
    await call(work, "journal.add_step", run.step(1, "planner", at()))
    await call(work, "journal.add_tool", run.tool_call(1, "logs.search", at()))
    await call(work, "journal.steps", "s", "r")
    await call(work, "journal.tools", "s", "r")
    await call(work, "journal.entries", "s", "r")
    await call(work, "runs.set_context_degraded", "s", "r")
    await call(work, "runs.set_feedback", "s", "r", Feedback("useful", None, at(2)))
    key, ended = ("s", "r"), answered(run, long_answer)
    head = await call(work, "sessions.lock_chain", "s")
    sealed = seal(ended, *await work.journal.entries(*key), head)
    await call(work, "runs.end", ended, sealed, expires_at=at(99))
    await statements.refused(InvalidTransition, work, "runs.end", ended, sealed, expires_at=None)
    await call(work, "sessions.tombstones", "s")
    await call(work, "sessions.idle", since=at(99), limit=9)
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
    await _use_history(statements, work)
    assert await call(work, "erase", "s", at=at(), idle_since=at(9)) is None, "r-2 is running"
    assert await call(work, "erase", "s", at=at()) is not None


async def _use_history(statements: Statements, work: SqlUnitOfWork) -> None:
    insert = sa.text(
        "insert into diagnosis_session (session_id, created_at, updated_at)"
        " values ('old', '2026-01-01 00:00:00.000000', '2026-01-01 00:00:00.000000')"
    )
    await work.sessions._transaction.run(insert)
    await statements.call(work, "history.trace", "old")
    await statements.call(work, "history.set_feedback", "old", Feedback("useful", None, at()))


async def use_outside(ledger: SqlLedger) -> Statements:
    """Call the methods that open a transaction of their own; session ``u`` with one ended run is left."""
    statements = Statements()
    with heard_in_full(statements.note):
        await _use_commits(statements, ledger)
        await _use_ends(statements, ledger)
        for run_id in (None, "r-u"):
            await statements.call(ledger, "ledger.trace", "u", run_id)
        await statements.call(ledger, "ledger.has_run", "u", "r-u")
        await statements.call(ledger, "ledger.check")
        await _use_verification(statements, SqlVerificationSource(ledger))
        statements.begin("isolation.sessions")
        assert "u" in [figures.session_id async for figures in SqlIsolationSource(ledger).sessions()]
    return statements


async def _use_commits(statements: Statements, ledger: SqlLedger) -> None:
    run = started("r-u", "u")

    async def finish(work: UnitOfWork) -> DiagnosisRun:
        return await end(work, answered(run))

    await statements.call(ledger, "ledger.start", chat_session("u"), run)
    await statements.refused(RunAlreadyExists, ledger, "ledger.start", chat_session("u"), run)
    steps = [run.step(number, "planner", at()) for number in range(1, TOGETHER + 1)]
    tools = [run.tool_call(number, "logs.search", at()) for number in range(1, TOGETHER + 1)]
    await asyncio.gather(*(statements.call(ledger, "ledger.record", entry) for entry in (*steps, *tools)))
    await statements.refused(ValueError, ledger, "ledger.record", steps[0])
    await statements.call(ledger, "ledger.transact", finish)
    await statements.refused(InvalidTransition, ledger, "ledger.record", run.step(99, "planner", at()))


async def _use_ends(statements: Statements, ledger: SqlLedger) -> None:
    """Runs that end together, each in a session of its own."""
    runs = [started(f"r-end-{number}", f"end-{number}") for number in range(TOGETHER)]
    for run in runs:
        await ledger.start(chat_session(run.session_id), run)
    await asyncio.gather(
        *(statements.call(ledger, "ledger.end", run.session_id, run.run_id, succeeding()) for run in runs)
    )
    await statements.refused(RunNotFound, ledger, "ledger.end", "end-0", "unknown", succeeding())


async def _use_verification(statements: Statements, source: SqlVerificationSource) -> None:
    await statements.call(_Named(source), "verification.sealed_since")
    statements.begin("verification.session_ids")
    assert "u" in [session_id async for session_id in source.session_ids()]
    statements.begin("verification.session")
    async with source.session("u") as snapshot:
        assert await _number(snapshot.runs()) == 1
    await statements.call(_Named(source), "verification.homeless_cases")


@frozen
class _Named:
    verification: SqlVerificationSource


async def _number(items: AsyncIterator[object]) -> int:
    return len([item async for item in items])
