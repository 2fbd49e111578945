"""Group commit in PostgreSQL: entries that arrive together become the rows of one statement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

import sqlalchemy as sa
from attrs import define, field, frozen

from casenotes.adapters.postgres.pool import PostgresConnection, PostgresConnections
from casenotes.adapters.rows import Row, to_row
from casenotes.adapters.sql.compiled import compiled
from casenotes.adapters.sql.dialect import POSTGRES
from casenotes.adapters.sql.group import Failed, Group
from casenotes.adapters.sql.journal import add_to
from casenotes.adapters.sql.ledger import add_entry, unit_of_work
from casenotes.adapters.sql.tables import agent_step, tool_invocation
from casenotes.adapters.sql.transaction import transaction, translated
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.model import AgentStep, ToolInvocation
from casenotes.ports.ledger import Body

T = TypeVar("T")

ABREAST: Final = 2
"""Statements of one kind that are under way at a time. With fewer, an entry waits longer for the one before it; with
more, fewer entries share a statement and its wait for the disk."""


@frozen
class ManyRows:
    """A statement that stores any number of entries of RUNNING runs, and returns the keys of those it stored.

    Its one argument is a list of rows as JSON: as many arrays as there are columns would cost the driver more.
    """

    table: sa.Table
    sql: str

    @classmethod
    def of(cls, table: sa.Table) -> ManyRows:
        columns = [column for column in table.c if column.name != "id"]
        names = ", ".join(column.name for column in columns)
        given = ", ".join(f"given.{column.name}" for column in columns)
        types = ", ".join(f"{column.name} {column.type.compile(POSTGRES.compiler)}" for column in columns)
        # The runs are locked in one order, whoever locks several; shared, so that they stay RUNNING until the commit.
        return cls(
            table,
            f"""
            WITH given AS MATERIALIZED (SELECT * FROM json_to_recordset($1::JSON) AS row ({types})),
            running AS (
                SELECT run.session_id, run.run_id FROM diagnosis_run AS run
                WHERE (run.session_id, run.run_id) IN (SELECT session_id, run_id FROM given)
                AND run.status = 'RUNNING' ORDER BY run.run_id FOR SHARE
            )
            INSERT INTO {table.name} ({names})
            SELECT {given} FROM given JOIN running USING (session_id, run_id)
            ON CONFLICT DO NOTHING RETURNING run_id, sequence
            """,
        )


_as_json: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=datetime.isoformat
).encode


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
            rows = [to_row(entry) for entry in entries]
        except ValueError:
            return set()
        used: PostgresConnection | None = None
        try:
            with translated(POSTGRES):
                async with self._writing.connection() as used:
                    if not used.takes_single_statements:
                        await used.begin()
                    stored = await _send(used, statement, rows)
                    if not used.takes_single_statements:
                        await used.commit()
        except (LedgerUnavailable, ValueError):
            if used is None or used.is_lost:
                raise
            return set()  # the server refused it, for one of them perhaps: each may try alone
        return stored

    async def _alone(self, entry: AgentStep | ToolInvocation) -> None | Failed:
        try:
            await self.transact(partial(add_entry, entry))
        except Exception as fault:
            return Failed(fault)
        return None


async def _send(
    connection: PostgresConnection, statement: ManyRows, rows: Sequence[Row]
) -> set[tuple[str, int]]:
    if len(rows) > 1:
        found = await connection.fetch(statement.sql, [_as_json(rows)])
        return {(row["run_id"], row["sequence"]) for row in found}
    [row] = rows
    one = compiled(add_to(POSTGRES, statement.table), row, POSTGRES.compiler)
    if await connection.execute(one.sql, one.arguments(row)) == 0:
        return set()
    return {(row["run_id"], row["sequence"])}
