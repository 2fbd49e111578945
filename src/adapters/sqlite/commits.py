"""Group commit in SQLite: what arrives while the writer is busy becomes one transaction, and one wait for the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from attrs import define, field

from casenotes.adapters.sql.dialect import SQLITE
from casenotes.adapters.sql.group import Failed, Group
from casenotes.adapters.sql.ledger import SqlUnitOfWork, unit_of_work
from casenotes.adapters.sql.transaction import Transaction, translated
from casenotes.adapters.sqlite import threads
from casenotes.adapters.sqlite.threads import InnerConnection, SqliteConnections, SqliteThread, roll_back
from casenotes.core.ending import Decide
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.model import AgentStep, ChatSession, DiagnosisRun, ToolInvocation
from casenotes.ports.ledger import Body
from casenotes.ports.through_work import ending, recording, starting

T = TypeVar("T")


@define(eq=False)
class SqliteCommits:
    """``casenotes.adapters.sql.ledger.Commits``: bodies are run inside the writer's thread, one after the other."""

    _writing: SqliteConnections
    _group: Group[Body[Any], Any] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._group = Group(self._write)

    async def transact(self, body: Body[T]) -> T:
        result: T = await self._group.put(body)
        return result

    async def start(self, session: ChatSession, run: DiagnosisRun) -> DiagnosisRun:
        return await self.transact(starting(session, run))

    async def record(self, entry: AgentStep | ToolInvocation) -> None:
        await self._group.put(recording(entry))

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        return await self.transact(ending(session_id, run_id, decide))

    async def done(self) -> None:
        await self._group.done()

    async def _write(self, bodies: Sequence[Body[Any]]) -> Sequence[Any]:
        async with self._writing.thread() as thread:
            with translated(SQLITE):
                return await thread.do(partial(_together, thread, bodies))


def _together(
    thread: SqliteThread, bodies: Sequence[Body[Any]], connection: sqlite3.Connection
) -> Sequence[Any]:
    """Run bodies in one transaction, or each in one of its own when the one could not be."""
    if len(bodies) > 1:
        try:
            return _in_one(thread, bodies, connection)
        except (sqlite3.Error, LedgerUnavailable):
            roll_back(connection)
    return [_alone(thread, body, connection) for body in bodies]


def _in_one(
    thread: SqliteThread, bodies: Sequence[Body[Any]], connection: sqlite3.Connection
) -> Sequence[Any]:
    outcomes = []
    threads.say(connection, "BEGIN IMMEDIATE")
    for body in bodies:
        threads.say(connection, "SAVEPOINT body")
        outcome = _outcome(thread, body, connection)
        if isinstance(outcome, Failed):
            if isinstance(outcome.reason, LedgerUnavailable):
                raise outcome.reason
            threads.say(connection, "ROLLBACK TO body")
        threads.say(connection, "RELEASE body")
        outcomes.append(outcome)
    threads.say(connection, "COMMIT")
    return outcomes


def _alone(thread: SqliteThread, body: Body[Any], connection: sqlite3.Connection) -> Any:
    try:
        with translated(SQLITE):
            threads.say(connection, "BEGIN IMMEDIATE")
        outcome = _outcome(thread, body, connection)
        if not isinstance(outcome, Failed):
            with translated(SQLITE):
                threads.say(connection, "COMMIT")
    except LedgerUnavailable as fault:
        outcome = Failed(fault)
    roll_back(connection)
    return outcome


def _outcome(thread: SqliteThread, body: Body[Any], connection: sqlite3.Connection) -> Any:
    """What a body returned, or ``Failed``. It is run to its end here: nothing that it awaits takes time."""
    opened = Transaction(InnerConnection(thread, connection), SQLITE)
    work: SqlUnitOfWork = unit_of_work(opened)
    running = body(work)
    try:
        running.send(None)
    except StopIteration as returned:
        return returned.value
    except Exception as fault:
        return Failed(fault)
    finally:
        opened.end()
        running.close()
    return Failed(RuntimeError("a body waits for nothing but its unit of work"))
