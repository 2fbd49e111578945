"""Steps and tool calls in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import sqlalchemy as sa
from attrs import frozen

from casenotes.adapters.rows import AnyRow, Row, from_row, to_row
from casenotes.adapters.sql.dialect import Dialect, Insert
from casenotes.adapters.sql.runs import this_run, why_not_running
from casenotes.adapters.sql.tables import agent_step, diagnosis_run, tool_invocation
from casenotes.adapters.sql.transaction import Transaction
from casenotes.adapters.sql.union import in_order, part, types_of
from casenotes.core.model import AgentStep, ToolInvocation
from casenotes.core.words import RunStatus


def _of_run(table: sa.Table) -> sa.ColumnElement[bool]:
    return sa.and_(
        table.c.session_id == sa.bindparam("of_session", type_=sa.Text),
        table.c.run_id == sa.bindparam("of_run", type_=sa.Text),
    )


def _rows(table: sa.Table) -> sa.Select[tuple[object, ...]]:
    return sa.select(table).where(_of_run(table)).order_by(table.c.sequence, table.c.id)


_STEPS = _rows(agent_step)
_TOOLS = _rows(tool_invocation)
_STEP, _TOOL = range(2)
_TYPES = types_of([*agent_step.c, *tool_invocation.c])
ENTRIES = in_order(
    *(
        part(kind, table, table.c.keys(), _TYPES).where(_of_run(table))
        for kind, table in ((_STEP, agent_step), (_TOOL, tool_invocation))
    )
)


def entries_in(rows: Sequence[AnyRow]) -> tuple[Sequence[AgentStep], Sequence[ToolInvocation]]:
    """The steps and tool calls in rows of ``ENTRIES``."""
    return (
        [from_row(AgentStep, row, is_fresh=True) for row in rows if row["kind"] == _STEP],
        [from_row(ToolInvocation, row, is_fresh=True) for row in rows if row["kind"] == _TOOL],
    )


@cache
def add_to(dialect: Dialect, table: sa.Table, *, waits: bool = True) -> Insert:
    """Insert a row if its run is RUNNING, and stays so until this is committed (hence the shared lock).

    Unless it ``waits``, nothing is inserted while others hold the run.
    """
    names = [column.name for column in table.c if column.name != "id"]
    running = (
        sa.select(*(sa.bindparam(name, type_=table.c[name].type) for name in names))
        .select_from(diagnosis_run)
        .where(
            diagnosis_run.c.session_id == sa.bindparam("session_id"),
            diagnosis_run.c.run_id == sa.bindparam("run_id"),
            diagnosis_run.c.status == RunStatus.RUNNING.value,
        )
        .with_for_update(read=True, skip_locked=not waits)
    )
    insert = dialect.insert(table).from_select(names, running)
    return insert.on_conflict_do_nothing()


@frozen
class JournalReader:
    """``casenotes.ports.ledger.JournalView``."""

    _transaction: Transaction

    async def steps(self, session_id: str, run_id: str) -> Sequence[AgentStep]:
        rows = await self._transaction.all(_STEPS, this_run(session_id, run_id))
        return [from_row(AgentStep, row) for row in rows]

    async def tools(self, session_id: str, run_id: str) -> Sequence[ToolInvocation]:
        rows = await self._transaction.all(_TOOLS, this_run(session_id, run_id))
        return [from_row(ToolInvocation, row) for row in rows]

    async def entries(
        self, session_id: str, run_id: str
    ) -> tuple[Sequence[AgentStep], Sequence[ToolInvocation]]:
        return entries_in(await self._transaction.all(ENTRIES, this_run(session_id, run_id)))


@frozen
class JournalWriter(JournalReader):
    """``casenotes.ports.ledger.Journal``."""

    async def add_step(self, step: AgentStep) -> None:
        await self._add(agent_step, to_row(step))

    async def add_tool(self, tool: ToolInvocation) -> None:
        await self._add(tool_invocation, to_row(tool))

    async def _add(self, table: sa.Table, row: Row) -> None:
        if await self._transaction.run(add_to(self._transaction.dialect, table), row) == 0:
            reason = await why_not_running(self._transaction, row["session_id"], row["run_id"])
            raise reason or ValueError(f"the run has a row with sequence {row['sequence']} already")
