"""A run's whole trace in one statement: one way to the database, and one moment, without a transaction around it."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from casenotes.adapters.rows import from_row
from casenotes.adapters.sql.runs import newest_first
from casenotes.adapters.sql.tables import (
    agent_step,
    chat_session,
    diagnosis_run,
    run_columns,
    tool_invocation,
)
from casenotes.adapters.sql.transaction import Transaction
from casenotes.core.model import AgentStep, ChatSession, DiagnosisRun, ToolInvocation
from casenotes.core.views import StoredTrace

_SESSION, _RUN, _STEP, _TOOL = range(4)
_COLUMNS: Final[dict[int, tuple[sa.Column[Any], ...]]] = {
    _SESSION: tuple(chat_session.c[name] for name in ("session_id", "status", "message_pair_count"))
    + tuple(chat_session.c[name] for name in ("created_at", "last_active_at", "expires_at")),
    _RUN: run_columns,
    _STEP: tuple(agent_step.c),
    _TOOL: tuple(tool_invocation.c),
}
_TYPES: Final = {column.name: column.type for columns in _COLUMNS.values() for column in columns}
"""Every column that any of the four has. A name means the same, and has the same type, wherever it stands."""


def _part(kind: int, source: sa.FromClause) -> sa.Select[Any]:
    """The rows of one kind, with the columns of the others empty."""
    own = {column.name for column in _COLUMNS[kind]}
    columns = (
        source.c[name] if name in own else sa.cast(sa.null(), type_).label(name)
        for name, type_ in _TYPES.items()
    )
    return sa.select(sa.literal_column(str(kind), sa.Integer).label("kind"), *columns)


@cache
def _statement(is_exact: bool) -> sa.CompoundSelect[Any]:
    of_session = sa.bindparam("of_session", type_=sa.Text)
    run = sa.select(*run_columns).where(diagnosis_run.c.session_id == of_session)
    if is_exact:
        run = run.where(diagnosis_run.c.run_id == sa.bindparam("of_run", type_=sa.Text))
    run_ = run.order_by(*newest_first).limit(1).cte("run")
    this_run = sa.select(run_.c.run_id).scalar_subquery()
    parts = [
        _part(_SESSION, chat_session).where(chat_session.c.session_id == of_session),
        _part(_RUN, run_),
        *(
            _part(kind, table).where(table.c.session_id == of_session, table.c.run_id == this_run)
            for kind, table in ((_STEP, agent_step), (_TOOL, tool_invocation))
        ),
    ]
    whole = sa.union_all(*parts)
    return whole.order_by(
        whole.selected_columns.kind, whole.selected_columns.sequence, whole.selected_columns.id
    )


async def read_trace(reading: Transaction, session_id: str, run_id: str | None) -> StoredTrace:
    """The session's row, this run of it or its latest, and that run's steps and tool calls."""
    values = {"of_session": session_id} if run_id is None else {"of_session": session_id, "of_run": run_id}
    kinds: tuple[list[dict[str, Any]], ...] = ([], [], [], [])
    for row in await reading.alone(_statement(run_id is not None), values):
        kinds[row["kind"]].append(row)
    sessions, runs, steps, tools = kinds
    return StoredTrace(
        session=from_row(ChatSession, sessions[0]) if sessions else None,
        run=from_row(DiagnosisRun, runs[0]) if runs else None,
        agent_steps=tuple(from_row(AgentStep, row) for row in steps),
        tool_invocations=tuple(from_row(ToolInvocation, row) for row in tools),
    )
