"""Group commit in PostgreSQL: entries that arrive together are the rows of one statement, ends share a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import asyncpg  # type: ignore[import-untyped]
from attrs import define, field

from casenotes.adapters.postgres.ends import PostgresEnds
from casenotes.adapters.postgres.pool import PostgresConnection, PostgresConnections
from casenotes.adapters.postgres.sending import in_one
from casenotes.adapters.postgres.statements import START, STEPS, TOOLS, ManyRows, start_values
from casenotes.adapters.rows import Row, from_row, to_row
from casenotes.adapters.sql.compiled import compiled
from casenotes.adapters.sql.dialect import POSTGRES
from casenotes.adapters.sql.group import Group
from casenotes.adapters.sql.journal import add_to
from casenotes.adapters.sql.ledger import unit_of_work
from casenotes.adapters.sql.transaction import transaction
from casenotes.core.ending import Decide
from casenotes.core.model import AgentStep, ChatSession, DiagnosisRun, ToolInvocation
from casenotes.ports.ledger import Body
from casenotes.ports.through_work import ending, recording, starting

T = TypeVar("T")

ABREAST: Final = 3
"""Statements of one kind that are under way at a time. With fewer, an entry waits longer for the one before it; with
more, fewer entries share a statement and its wait for the disk."""


_TOLD_IN_STEPS: Final = (asyncpg.UniqueViolationError, asyncpg.TransactionRollbackError)
"""Refusals of a start whose reason a transaction of single steps tells; of any other, such as a lock that was waited
for in vain, it could tell no more."""


@define(eq=False)
class PostgresCommits:
    """``casenotes.adapters.sql.ledger.Commits``.

    Those who share a commit wait for no row that others hold: what is passed over for that, or was refused with others,
    is done again by its caller alone, who then waits, or hears why.
    """

    _writing: PostgresConnections
    _steps: Group[AgentStep, bool] = field(init=False)
    _tools: Group[ToolInvocation, bool] = field(init=False)
    _ends: PostgresEnds = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._steps = Group(lambda entries: self._write(STEPS, entries), ABREAST)
        self._tools = Group(lambda entries: self._write(TOOLS, entries), ABREAST)
        self._ends = PostgresEnds(self._writing)

    async def transact(self, body: Body[T]) -> T:
        async with transaction(self._writing, POSTGRES) as opened:
            result = await body(unit_of_work(opened))
            await opened.commit()
        return result

    async def start(self, session: ChatSession, run: DiagnosisRun) -> DiagnosisRun:
        values = start_values(session, run)
        made = compiled(START, values, POSTGRES.compiler)
        rows = await in_one(
            self._writing, lambda used: used.fetch(made.sql, made.arguments(values)), _TOLD_IN_STEPS
        )
        if not rows:
            return await self.transact(starting(session, run))
        return from_row(DiagnosisRun, values | rows[0])

    async def record(self, entry: AgentStep | ToolInvocation) -> None:
        is_stored = await (self._steps.put(entry) if isinstance(entry, AgentStep) else self._tools.put(entry))
        if not is_stored:
            await self.transact(recording(entry))

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        ended = await self._ends.end(session_id, run_id, decide)
        return await self.transact(ending(session_id, run_id, decide)) if ended is None else ended

    async def done(self) -> None:
        await self._steps.done()
        await self._tools.done()
        await self._ends.done()

    async def _write(
        self, statement: ManyRows, entries: Sequence[AgentStep | ToolInvocation]
    ) -> Sequence[bool]:
        """Store what can be stored together; which of the entries that were."""
        try:
            rows = [to_row(entry) for entry in entries]
        except ValueError:
            return [False] * len(entries)
        stored = await in_one(self._writing, lambda used: _send(used, statement, rows)) or []
        outcomes = []
        for row in rows:
            key = _key(row)
            outcomes.append(key in stored)
            if key in stored:
                stored.remove(key)  # were it there twice, the other is not stored
        return outcomes


def _key(row: Row) -> tuple[str, str, int]:
    return row["session_id"], row["run_id"], row["sequence"]


async def _send(
    connection: PostgresConnection, statement: ManyRows, rows: Sequence[Row]
) -> list[tuple[str, str, int]]:
    """Which rows were stored, by their keys."""
    if len(rows) > 1:
        return [_key(found) for found in await connection.fetch(statement.sql, [statement.argument(rows)])]
    [row] = rows
    one = compiled(add_to(POSTGRES, statement.table, waits=False), row, POSTGRES.compiler)
    stored = await connection.execute(one.sql, one.arguments(row))
    return [_key(row)] * stored
