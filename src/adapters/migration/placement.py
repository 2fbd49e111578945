"""The statements of the backfill. Each works on the historical rows with the ids it is given.

They speak of the columns of revision 0002 only, and are part of that revision: a later change of the schema must
leave them true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql import ColumnElement, TableClause

from casenotes.adapters.migration import expressions


def _table(name: str, columns: str) -> TableClause:
    return sa.table(name, *(sa.column(column) for column in columns.split()))


OLD = _table(
    "diagnosis_session",
    "id session_id query answer status agent_flow self_evaluation feedback feedback_comment created_at updated_at",
)
RUN = _table(
    "diagnosis_run",
    "run_id session_id query status agent_flow answer error_message self_evaluation feedback feedback_comment "
    "step_count tool_call_count created_at updated_at finished_at",
)
CHAT = _table("chat_session", "session_id status message_pair_count created_at last_active_at")
STEP = _table("agent_step", "id session_id step_number run_id sequence")
TOOL = _table("tool_invocation", "id session_id step_number run_id sequence step_sequence result result_size")
CASE = _table("case_library", "diagnosis_id source session_id")

_FINISHED = ("success", "succeeded", "completed", "finished")


def unplaced(connection: Connection) -> sa.Select[int]:
    """The ids of the historical rows that have no compatibility run and should."""
    return sa.select(OLD.c.id).where(~is_placed(connection), is_latest(connection))


def late(connection: Connection) -> sa.Select[int]:
    """The ids of the historical rows of whose session some step or tool call has no run."""
    without_run = (sa.select(table.c.session_id).where(table.c.run_id.is_(None)) for table in (STEP, TOOL))
    return sa.select(OLD.c.id).where(
        sa.or_(*(OLD.c.session_id.in_(ids) for ids in without_run)), is_latest(connection)
    )


def is_placed(connection: Connection) -> ColumnElement[bool]:
    """The session has its compatibility run."""
    return sa.exists().where(
        RUN.c.session_id == OLD.c.session_id,
        RUN.c.run_id == expressions.run_id(connection, OLD.c.session_id),
    )


def is_latest(connection: Connection) -> ColumnElement[bool]:
    """No other row of the session is later by (created_at, id): adopted tables may repeat a session."""
    other = OLD.alias("other")
    its_time = expressions.moment(connection, other.c.created_at, other.c.updated_at)
    return ~sa.exists().where(
        other.c.session_id == OLD.c.session_id,
        other.c.id != OLD.c.id,
        sa.tuple_(its_time, other.c.id) > sa.tuple_(_created(connection), OLD.c.id),
    )


def insert_chat_sessions(connection: Connection, ids: Sequence[int]) -> None:
    """A chat session for each of these that has no compatibility run yet; one that is there stays as it is."""
    row = {
        CHAT.c.session_id: OLD.c.session_id,
        CHAT.c.status: sa.literal("ACTIVE"),
        CHAT.c.message_pair_count: sa.case(
            (_is_blank(OLD.c.answer), sa.literal_column("0")), else_=sa.literal_column("1")
        ),
        CHAT.c.created_at: _created(connection),
        CHAT.c.last_active_at: _updated(connection),
    }
    _insert_from_old(connection, CHAT, row, ids, key="session_id")


def insert_runs(connection: Connection, ids: Sequence[int]) -> int:
    """A compatibility run for each of these that has none; returns how many. A run id that is taken is let be."""
    word = sa.func.trim(OLD.c.status)
    finished = sa.func.lower(word).in_(_FINISHED)
    reason = sa.case(
        (finished, sa.null()),
        (_is_blank(OLD.c.status), sa.literal("the old system recorded no status")),
        else_=sa.literal("the old system recorded the status ", sa.Text).concat(word),
    )
    row = {
        RUN.c.run_id: expressions.run_id(connection, OLD.c.session_id),
        RUN.c.session_id: OLD.c.session_id,
        RUN.c.query: sa.func.coalesce(OLD.c.query, ""),
        RUN.c.status: sa.case((finished, sa.literal("SUCCESS")), else_=sa.literal("FAILED")),
        RUN.c.agent_flow: sa.case(
            (_is_blank(OLD.c.agent_flow), sa.literal("LEGACY")), else_=OLD.c.agent_flow
        ),
        RUN.c.answer: OLD.c.answer,
        RUN.c.error_message: reason,
        RUN.c.self_evaluation: expressions.json(connection, OLD.c.self_evaluation),
        RUN.c.feedback: OLD.c.feedback,
        RUN.c.feedback_comment: OLD.c.feedback_comment,
        RUN.c.created_at: _created(connection),
        RUN.c.updated_at: _updated(connection),
        RUN.c.finished_at: _updated(connection),
    }
    return _insert_from_old(connection, RUN, row, ids, key="run_id")


def place_steps(connection: Connection, ids: Sequence[int]) -> int:
    """Give the sessions' steps without a run to their compatibility run, in order; returns how many."""
    line = _line(connection, STEP, ids)
    return connection.execute(
        sa.update(STEP).where(STEP.c.id == line.c.id).values(run_id=line.c.run_id, sequence=line.c.sequence)
    ).rowcount


def place_tools(connection: Connection, ids: Sequence[int]) -> int:
    """The same for tool calls, each pointing to the first step of its number in the run, if there is one."""
    line = _line(connection, TOOL, ids)
    step = (
        sa.select(sa.func.min(STEP.c.sequence))
        .where(
            STEP.c.session_id == TOOL.c.session_id,
            STEP.c.run_id == line.c.run_id,
            STEP.c.step_number == TOOL.c.step_number,
        )
        .correlate(TOOL, line)
        .scalar_subquery()
    )
    return connection.execute(
        sa.update(TOOL)
        .where(TOOL.c.id == line.c.id)
        .values(
            run_id=line.c.run_id,
            sequence=line.c.sequence,
            step_sequence=step,
            result_size=expressions.size(connection, TOOL.c.result),
        )
    ).rowcount


def count(connection: Connection, ids: Sequence[int]) -> None:
    """Count the steps and tool calls of the sessions' compatibility runs anew, from the rows."""

    def rows_of(table: TableClause) -> sa.ScalarSelect[int]:
        return (
            sa.select(sa.func.count())
            .select_from(table)
            .where(table.c.session_id == RUN.c.session_id, table.c.run_id == RUN.c.run_id)
            .correlate(RUN)
            .scalar_subquery()
        )

    runs = sa.select(expressions.run_id(connection, OLD.c.session_id)).where(OLD.c.id.in_(ids))
    connection.execute(
        sa.update(RUN)
        .where(RUN.c.run_id.in_(runs))
        .values(step_count=rows_of(STEP), tool_call_count=rows_of(TOOL))
    )


def _line(connection: Connection, table: TableClause, ids: Sequence[int]) -> sa.Subquery:
    """(id, run_id, sequence) for the rows without a run: by step number, then id, behind those that are placed."""
    session = table.c.session_id
    last = sa.func.max(sa.func.coalesce(table.c.sequence, sa.literal_column("0"))).over(partition_by=session)
    place = sa.func.row_number().over(
        partition_by=(session, table.c.run_id),
        order_by=(table.c.step_number.asc().nulls_last(), table.c.id),
    )
    # The placed rows are in it for their highest sequence only.
    rows = (
        sa.select(
            table.c.id, RUN.c.run_id, (last + place).label("sequence"), table.c.run_id.label("placed_in")
        )
        .join_from(OLD, table, session == OLD.c.session_id)
        .join(
            RUN,
            sa.and_(
                RUN.c.session_id == OLD.c.session_id,
                RUN.c.run_id == expressions.run_id(connection, OLD.c.session_id),
            ),
        )
        .where(OLD.c.id.in_(ids), sa.or_(table.c.run_id.is_(None), table.c.run_id == RUN.c.run_id))
        .subquery("rows")
    )
    return (
        sa.select(rows.c.id, rows.c.run_id, rows.c.sequence)
        .where(rows.c.placed_in.is_(None))
        .subquery("line")
    )


def _insert_from_old(
    connection: Connection,
    table: TableClause,
    row: Mapping[sa.ColumnClause[Any], ColumnElement[Any]],
    ids: Sequence[int],
    *,
    key: str,
) -> int:
    rows = sa.select(*row.values()).where(OLD.c.id.in_(ids), ~is_placed(connection)).order_by(OLD.c.id)
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = insert(table).from_select([column.name for column in row], rows)
    return connection.execute(statement.on_conflict_do_nothing(index_elements=[key])).rowcount


def _is_blank(text: ColumnElement[Any]) -> ColumnElement[bool]:
    return sa.func.trim(sa.func.coalesce(text, "")) == ""


def _created(connection: Connection) -> ColumnElement[Any]:
    return expressions.moment(connection, OLD.c.created_at, OLD.c.updated_at)


def _updated(connection: Connection) -> ColumnElement[Any]:
    """When the row last changed; never before it was made."""
    created = _created(connection)
    updated = expressions.moment(connection, OLD.c.updated_at, OLD.c.created_at)
    return sa.case((updated < created, created), else_=updated)
