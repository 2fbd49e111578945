"""Group commit in PostgreSQL: entries that arrive together become the rows of one statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from attrs import define, field, frozen

from casenotes.adapters.postgres.pool import PostgresConnection, PostgresConnections
from casenotes.adapters.rows import Row, to_row
from casenotes.adapters.sql.dialect import POSTGRES
from casenotes.adapters.sql.group import Failed, Group
from casenotes.adapters.sql.ledger import unit_of_work
from casenotes.adapters.sql.tables import agent_step, tool_invocation
from casenotes.adapters.sql.transaction import transaction, translated
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.model import AgentStep, ToolInvocation
from casenotes.ports.ledger import Body, UnitOfWork

T = TypeVar("T")

ABREAST: Final = 4
"""Statements of one kind that are under way at a time. With fewer, an entry waits longer for the one before it; with
more, fewer entries share a statement and its wait for the disk."""


@frozen
class ManyRows:
    """A statement that stores any number of entries of RUNNING runs, and returns the keys of those it stored."""

    sql: str
    columns: tuple[tuple[str, Callable[[Any], Any] | None], ...]

    @classmethod
    def of(cls, table: sa.Table) -> ManyRows:
        columns = [column for column in table.c if column.name != "id"]
        names = ", ".join(column.name for column in columns)
        arrays = ", ".join(f"${n}::{_array_of(column)}" for n, column in enumerate(columns, 1))
        given = ", ".join(f"given.{column.name}{_cast(column)}" for column in columns)
        # The runs are locked in one order, whoever locks several; shared, so that they stay RUNNING until the commit.
        sql = f"""
            WITH given ({names}) AS (SELECT * FROM unnest({arrays})),
            running AS (
                SELECT run.session_id, run.run_id FROM diagnosis_run AS run
                WHERE (run.session_id, run.run_id) IN (SELECT session_id, run_id FROM given)
                AND run.status = 'RUNNING' ORDER BY run.run_id FOR SHARE
            )
            INSERT INTO {table.name} ({names})
            SELECT {given} FROM given JOIN running USING (session_id, run_id)
            ON CONFLICT DO NOTHING RETURNING run_id, sequence
        """
        processors = (
            column.type.dialect_impl(POSTGRES.compiler).bind_processor(POSTGRES.compiler)
            for column in columns
        )
        return cls(sql, tuple(zip((column.name for column in columns), processors, strict=True)))

    def arguments(self, rows: Sequence[Row]) -> list[list[Any]]:
        """The rows by column."""
        return [
            [row[name] if ready is None else ready(row[name]) for row in rows] for name, ready in self.columns
        ]


def _array_of(column: sa.Column[Any]) -> str:
    # JSON comes as text: its own type would be an array of values in a format of the driver's.
    return "TEXT[]" if _cast(column) else f"{column.type.compile(POSTGRES.compiler)}[]"


def _cast(column: sa.Column[Any]) -> str:
    return "::JSONB" if column.type.compile(POSTGRES.compiler) == "JSONB" else ""


_STEPS: Final = ManyRows.of(agent_step)
_TOOLS: Final = ManyRows.of(tool_invocation)


@define(eq=False)
class PostgresCommits:
    """``casenotes.adapters.sql.ledger.Commits``."""

    _writing: PostgresConnections
    _steps: Group[AgentStep, None] = field(init=False)
    _tools: Group[ToolInvocation, None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._steps = Group(lambda entries: self._write(_STEPS, entries), ABREAST)
        self._tools = Group(lambda entries: self._write(_TOOLS, entries), ABREAST)

    async def transact(self, body: Body[T]) -> T:
        async with transaction(self._writing, POSTGRES) as opened:
            result = await body(unit_of_work(opened))
            await opened.commit()
        return result

    async def record(self, entry: AgentStep | ToolInvocation) -> None:
        await (self._steps.put(entry) if isinstance(entry, AgentStep) else self._tools.put(entry))

    async def done(self) -> None:
        await self._steps.done()
        await self._tools.done()

    async def _write(
        self, statement: ManyRows, entries: Sequence[AgentStep | ToolInvocation]
    ) -> Sequence[None | Failed]:
        stored = await self._stored(statement, entries)
        outcomes: list[None | Failed] = []
        for entry in entries:
            key = (entry.run_id, entry.sequence)
            if key in stored:
                stored.remove(key)
                outcomes.append(None)
            else:
                outcomes.append(await self._alone(entry))
        return outcomes

    async def _stored(
        self, statement: ManyRows, entries: Sequence[AgentStep | ToolInvocation]
    ) -> set[tuple[str, int]]:
        """Store what can be stored together; which entries that were."""
        try:
            arguments = statement.arguments([to_row(entry) for entry in entries])
        except ValueError:
            return set()
        used: PostgresConnection | None = None
        try:
            with translated(POSTGRES):
                async with self._writing.connection() as used:
                    if not used.takes_single_statements:
                        await used.begin()
                    rows = await used.fetch(statement.sql, arguments)
                    if not used.takes_single_statements:
                        await used.commit()
        except (LedgerUnavailable, ValueError):
            if used is None or used.is_lost:
                raise
            return set()  # the server refused it, for one of them perhaps: each may try alone
        return {(row["run_id"], row["sequence"]) for row in rows}

    async def _alone(self, entry: AgentStep | ToolInvocation) -> None | Failed:
        async def add(work: UnitOfWork) -> None:
            await (
                work.journal.add_step(entry) if isinstance(entry, AgentStep) else work.journal.add_tool(entry)
            )

        try:
            await self.transact(add)
        except Exception as fault:
            return Failed(fault)
        return None
