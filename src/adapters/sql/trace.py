"""A run's whole trace in one statement: one way to the database, and one moment, without a transaction around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen

from casenotes.adapters.rows import from_row
from casenotes.adapters.sql.compiled import Compiled, Processor
from casenotes.adapters.sql.connections import Row
from casenotes.adapters.sql.runs import newest_first
from casenotes.adapters.sql.tables import (
    agent_step,
    chat_session,
    diagnosis_run,
    run_columns,
    tool_invocation,
)
from casenotes.adapters.sql.transaction import Transaction
from casenotes.adapters.sql.union import part, types_of
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
_TYPES: Final = types_of(column for columns in _COLUMNS.values() for column in columns)


def _part(kind: int, source: sa.FromClause) -> sa.Select[Any]:
    return part(kind, source, {column.name for column in _COLUMNS[kind]}, _TYPES)


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
    # Not ordered: to sort so wide a result takes a database longer than its few rows take here.
    return sa.union_all(*parts)


@frozen
class _Kind:
    """How the rows of one kind are read: where its columns stand, and which of them are made ready, and how."""

    names: tuple[str, ...]
    values: Callable[[Sequence[Any]], tuple[Any, ...]]
    ready: tuple[tuple[str, Processor], ...]

    def row(self, plain: Sequence[Any]) -> Row:
        row: Row = dict(zip(self.names, self.values(plain), strict=True))
        for name, make_ready in self.ready:
            if (value := row[name]) is not None:
                row[name] = make_ready(value)
        return row


@cache
def _kinds(made: Compiled) -> tuple[_Kind, ...]:
    places = {name: place for place, name in enumerate(made.names)}
    return tuple(
        _Kind(
            names := tuple(column.name for column in columns),
            itemgetter(*(places[name] for name in names)),
            tuple((name, ready) for name, ready in made.columns if name in names),
        )
        for columns in _COLUMNS.values()
    )


async def read_trace(reading: Transaction, session_id: str, run_id: str | None) -> StoredTrace:
    """The session's row, this run of it or its latest, and that run's steps and tool calls."""
    values = {"of_session": session_id} if run_id is None else {"of_session": session_id, "of_run": run_id}
    made, found = await reading.alone(_statement(run_id is not None), values)
    rows: tuple[list[Row], ...] = ([], [], [], [])
    kinds = _kinds(made)
    for plain in found:
        kind = plain[0]
        rows[kind].append(kinds[kind].row(plain))
    sessions, runs, steps, tools = rows
    return StoredTrace(
        session=from_row(ChatSession, sessions[0]) if sessions else None,
        run=from_row(DiagnosisRun, runs[0], is_fresh=True) if runs else None,
        agent_steps=tuple([from_row(AgentStep, row, is_fresh=True) for row in sorted(steps, key=_order)]),
        tool_invocations=tuple(
            [from_row(ToolInvocation, row, is_fresh=True) for row in sorted(tools, key=_order)]
        ),
    )


def _order(row: Row) -> tuple[int, int]:
    return row["sequence"] or 0, row["id"]
