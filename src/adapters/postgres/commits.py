"""Group commit in PostgreSQL: entries that arrive together become the rows of one statement."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from attrs import define, field

from casenotes.adapters.postgres.pool import PostgresConnection, PostgresConnections
from casenotes.adapters.postgres.statements import START, STEPS, TOOLS, ManyRows, start_values
from casenotes.adapters.rows import Row, from_row, to_row
from casenotes.adapters.sql.compiled import compiled
from casenotes.adapters.sql.dialect import POSTGRES
from casenotes.adapters.sql.group import Failed, Group
from casenotes.adapters.sql.journal import add_to
from casenotes.adapters.sql.ledger import unit_of_work
from casenotes.adapters.sql.transaction import transaction, translated
from casenotes.core.ending import Decide
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.model import AgentStep, ChatSession, DiagnosisRun, ToolInvocation
from casenotes.ports.ledger import Body
from casenotes.ports.through_work import ending, recording, starting

T = TypeVar("T")

ABREAST: Final = 3
"""Statements of one kind that are under way at a time. With fewer, an entry waits longer for the one before it; with
more, fewer entries share a statement and its wait for the disk."""


@define(eq=False)
class PostgresCommits:
    """``casenotes.adapters.sql.ledger.Commits``."""

    _writing: PostgresConnections
    _steps: Group[AgentStep, None] = field(init=False)
    _tools: Group[ToolInvocation, None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._steps = Group(lambda entries: self._write(STEPS, entries), ABREAST)
        self._tools = Group(lambda entries: self._write(TOOLS, entries), ABREAST)

    async def transact(self, body: Body[T]) -> T:
        async with transaction(self._writing, POSTGRES) as opened:
            result = await body(unit_of_work(opened))
            await opened.commit()
        return result

    async def start(self, session: ChatSession, run: DiagnosisRun) -> DiagnosisRun:
        values = start_values(session, run)
        made = compiled(START, values, POSTGRES.compiler)
        rows = await self._in_one(lambda used: used.fetch(made.sql, made.arguments(values)))
        if not rows:
            return await self.transact(starting(session, run))
        return from_row(DiagnosisRun, values | rows[0])

    async def record(self, entry: AgentStep | ToolInvocation) -> None:
        await (self._steps.put(entry) if isinstance(entry, AgentStep) else self._tools.put(entry))

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        return await self.transact(ending(session_id, run_id, decide))

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
        stored = await self._in_one(lambda used: _send(used, statement, rows))
        return set() if stored is None else stored

    async def _in_one(self, send: Callable[[PostgresConnection], Awaitable[T]]) -> T | None:
        """What came of one statement, which is a transaction of its own; ``None`` when the server refused it.

        Raises ``LedgerUnavailable`` where nobody knows what came of it.
        """
        used: PostgresConnection | None = None
        try:
            with translated(POSTGRES):
                async with self._writing.connection() as used:
                    if not used.takes_single_statements:
                        await used.begin()
                    result = await send(used)
                    if not used.takes_single_statements:
                        await used.commit()
        except (LedgerUnavailable, ValueError):
            if used is None or used.is_lost:
                raise
            # It may have been refused for a part of it only, and why is better told of each: each may try alone.
            return None
        return result

    async def _alone(self, entry: AgentStep | ToolInvocation) -> None | Failed:
        try:
            await self.transact(recording(entry))
        except Exception as fault:
            return Failed(fault)
        return None


async def _send(
    connection: PostgresConnection, statement: ManyRows, rows: Sequence[Row]
) -> set[tuple[str, int]]:
    if len(rows) > 1:
        found: list[dict[str, Any]] = await connection.fetch(statement.sql, [statement.argument(rows)])
        return {(row["run_id"], row["sequence"]) for row in found}
    [row] = rows
    one = compiled(add_to(POSTGRES, statement.table), row, POSTGRES.compiler)
    if await connection.execute(one.sql, one.arguments(row)) == 0:
        return set()
    return {(row["run_id"], row["sequence"])}
