"""Group commit in PostgreSQL: entries that arrive together become the rows of one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypeVar

from attrs import define, field

from casenotes.adapters.postgres.ends import PostgresEnds
from casenotes.adapters.postgres.pool import PostgresConnection, PostgresConnections
from casenotes.adapters.postgres.sending import each_of, in_one
from casenotes.adapters.postgres.statements import START, STEPS, TOOLS, ManyRows, start_values
from casenotes.adapters.rows import Row, from_row, to_row
from casenotes.adapters.sql.compiled import compiled
from casenotes.adapters.sql.dialect import POSTGRES
from casenotes.adapters.sql.group import Failed, Group
from casenotes.adapters.sql.journal import add_to
from casenotes.adapters.sql.ledger import unit_of_work
from casenotes.adapters.sql.transaction import transaction
from casenotes.core.ending import Decide
from casenotes.core.model import AgentStep, ChatSession, DiagnosisRun, ToolInvocation
from casenotes.ports.ledger import Body
from casenotes.ports.through_work import recording, starting

T = TypeVar("T")

ABREAST: Final = 3
"""Statements of one kind that are under way at a time. With fewer, an entry waits longer for the one before it; with
more, fewer entries share a statement and its wait for the disk."""


_Start: TypeAlias = tuple[ChatSession, DiagnosisRun]


@define(eq=False)
class PostgresCommits:
    """``casenotes.adapters.sql.ledger.Commits``."""

    _writing: PostgresConnections
    _steps: Group[AgentStep, None] = field(init=False)
    _tools: Group[ToolInvocation, None] = field(init=False)
    _starts: Group[_Start, DiagnosisRun] = field(init=False)
    _ends: PostgresEnds = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._steps = Group(lambda entries: self._write(STEPS, entries), ABREAST)
        self._tools = Group(lambda entries: self._write(TOOLS, entries), ABREAST)
        self._starts = Group(self._write_starts, ABREAST)
        self._ends = PostgresEnds(self._writing, self.transact)

    async def transact(self, body: Body[T]) -> T:
        async with transaction(self._writing, POSTGRES) as opened:
            result = await body(unit_of_work(opened))
            await opened.commit()
        return result

    async def start(self, session: ChatSession, run: DiagnosisRun) -> DiagnosisRun:
        return await self._starts.put((session, run))

    async def record(self, entry: AgentStep | ToolInvocation) -> None:
        await (self._steps.put(entry) if isinstance(entry, AgentStep) else self._tools.put(entry))

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        return await self._ends.end(session_id, run_id, decide)

    async def done(self) -> None:
        await self._steps.done()
        await self._tools.done()
        await self._starts.done()
        await self._ends.done()

    async def _write_starts(self, starts: Sequence[_Start]) -> Sequence[DiagnosisRun | Failed]:
        try:
            values = {run.run_id: start_values(session, run) for session, run in starts}
        except ValueError:
            values = {}
        if len(values) < len(starts):  # nor can one statement tell two runs of one id apart
            values = {}
        # The sessions are locked in the order in which all lock several.
        in_order = sorted(values.values(), key=lambda each: each["session_id"])
        stored = await in_one(self._writing, lambda used: each_of(used, START, in_order)) if values else ()
        ids = {row["run_id"]: row for row in stored or ()}
        return [
            from_row(DiagnosisRun, values[run.run_id] | ids[run.run_id])
            if run.run_id in ids
            else await self._alone(starting(session, run))
            for session, run in starts
        ]

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
                outcomes.append(await self._alone(recording(entry)))
        return outcomes

    async def _stored(
        self, statement: ManyRows, entries: Sequence[AgentStep | ToolInvocation]
    ) -> set[tuple[str, int]]:
        """Store what can be stored together; which entries that were."""
        try:
            rows = [to_row(entry) for entry in entries]
        except ValueError:
            return set()
        stored = await in_one(self._writing, lambda used: _send(used, statement, rows))
        return set() if stored is None else stored

    async def _alone(self, body: Body[T]) -> T | Failed:
        try:
            return await self.transact(body)
        except Exception as fault:
            return Failed(fault)


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
