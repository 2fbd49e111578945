"""The statements of the backfill. Each works on the sessions of the batch that was gathered before.

They speak of the columns of revision 0002 only, and are part of that revision: a later change of the schema must
leave them true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql import ColumnElement, TableClause

from casenotes.adapters.migration import expressions

Phase: TypeAlias = Callable[[Connection], sa.Select[int]]
"""Selects the ids of the historical rows that a phase of the backfill is about."""


def _table(name: str, columns: str) -> TableClause:
    return sa.table(name, *(sa.column(column) for column in columns.split()))


OLD = _table(
    "diagnosis_session",
    "id session_id query answer status agent_flow self_evaluation feedback feedback_comment created_at updated_at",
)
RUN = _table(
    "diagnosis_run",
    "run_id session_id query status agent_flow answer error_message self_evaluation feedback feedback_comment "
    "feedback_at step_count tool_call_count created_at updated_at finished_at",
)
CHAT = _table("chat_session", "session_id status message_pair_count created_at last_active_at")
STEP = _table("agent_step", "id session_id step_number run_id sequence")
TOOL = _table("tool_invocation", "id session_id step_number run_id sequence step_sequence result result_size")

BATCH = _table("casenotes_batch", "id session_id run_id")
"""A temporary table: the historical rows at work, with the ids of their sessions' compatibility runs."""

_FINISHED = ("success", "succeeded", "completed", "finished")


def unplaced(connection: Connection) -> sa.Select[int]:
    """The rows whose session has no compatibility run and should: the run's id is free, and no other row is later."""
    return sa.select(OLD.c.id).where(~has_run_id(connection), is_latest(connection))


def late(connection: Connection) -> sa.Select[int]:
    """The rows whose session has its compatibility run, and steps or tool calls that are in no run."""
    # Not two of IN, joined by OR: Postgres would read what is in no run once for each session.
    without_run = sa.union(
        *(sa.select(each.c.session_id).where(each.c.run_id.is_(None)) for each in (STEP, TOOL))
    )
    return sa.select(OLD.c.id).where(
        OLD.c.session_id.in_(without_run), is_placed(connection), is_latest(connection)
    )


def has_run_id(connection: Connection) -> ColumnElement[bool]:
    """A run has the id of the session's compatibility run."""
    return sa.exists().where(RUN.c.run_id == expressions.run_id(connection, OLD.c.session_id))


def is_placed(connection: Connection) -> ColumnElement[bool]:
    """The session has its compatibility run."""
    # Not EXISTS with both ids: Postgres takes them for independent, expects one row, and plans for that.
    own = (
        sa.select(RUN.c.session_id == OLD.c.session_id)
        .where(RUN.c.run_id == expressions.run_id(connection, OLD.c.session_id))
        .correlate(OLD)
        .scalar_subquery()
    )
    return sa.func.coalesce(own, sa.false(), type_=sa.Boolean)


def is_latest(connection: Connection) -> ColumnElement[bool]:
    """No other row of the session is later by (created_at, id): adopted tables may repeat a session."""
    other = OLD.alias("other")
    its_time = expressions.moment(connection, other.c.created_at, other.c.updated_at)
    return ~sa.exists().where(
        other.c.session_id == OLD.c.session_id,
        other.c.id != OLD.c.id,
        sa.tuple_(its_time, other.c.id) > sa.tuple_(_created(connection), OLD.c.id),
    )


def gather(connection: Connection, phase: Phase, after: int | None, limit: int) -> int | None:
    """Make the phase's next ``limit`` rows, with ids over ``after``, the batch; the last one's id, ``None`` of none."""
    if connection.dialect.name == "postgresql":
        # A batch is a small part of large tables, and lies together: not to be looked for in all of them.
        connection.exec_driver_sql("SET LOCAL random_page_cost = 1")
        connection.exec_driver_sql("SET LOCAL work_mem = '64MB'")
    connection.exec_driver_sql(
        "CREATE TEMPORARY TABLE casenotes_batch (id BIGINT PRIMARY KEY, session_id TEXT NOT NULL, run_id TEXT NOT NULL)"
    )
    chosen = phase(connection).add_columns(
        OLD.c.session_id, expressions.run_id(connection, OLD.c.session_id).label("run_id")
    )
    # Held until the batch is done: whoever erases a session waits, and then removes its new run too.
    held = next_rows(chosen, after, limit).with_for_update(read=True, key_share=True, of=OLD)
    connection.execute(sa.insert(BATCH).from_select(list(BATCH.c.keys()), held))
    last: int | None = connection.scalar(sa.select(sa.func.max(BATCH.c.id)))
    return last


def next_rows(chosen: sa.Select[Any], after: int | None, limit: int) -> sa.Select[Any]:
    """The first ``limit`` of these historical rows with ids over ``after``."""
    ordered = chosen.order_by(OLD.c.id).limit(limit)
    return ordered if after is None else ordered.where(OLD.c.id > after)


def forget_batch(connection: Connection) -> None:
    connection.exec_driver_sql("DROP TABLE casenotes_batch")


def insert_chat_sessions(connection: Connection) -> None:
    """A chat session for each session of the batch; one that is there stays as it is."""
    row = {
        CHAT.c.session_id: OLD.c.session_id,
        CHAT.c.status: sa.literal("ACTIVE"),
        CHAT.c.message_pair_count: sa.case(
            (_is_blank(OLD.c.answer), sa.literal_column("0")), else_=sa.literal_column("1")
        ),
        CHAT.c.created_at: _created(connection),
        CHAT.c.last_active_at: _updated(connection),
    }
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = insert(CHAT).from_select(*_from_batch(row))
    connection.execute(statement.on_conflict_do_nothing(index_elements=["session_id"]))


def place_steps(connection: Connection) -> int:
    """Give the sessions' steps without a run to their compatibility run, in order; returns how many."""
    line = _line(STEP)
    return connection.execute(
        sa.update(STEP).where(STEP.c.id == line.c.id).values(run_id=line.c.run_id, sequence=line.c.sequence)
    ).rowcount


def place_tools(connection: Connection) -> int:
    """The same for tool calls, each pointing to the first step of its number in the run, if there is one."""
    line = _line(TOOL)
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


def insert_runs(connection: Connection) -> int:
    """The compatibility runs, with the counts of what was placed in them before; returns how many."""
    word = sa.func.trim(OLD.c.status)
    finished = sa.func.lower(word).in_(_FINISHED)
    reason = sa.case(
        (finished, sa.null()),
        (_is_blank(OLD.c.status), sa.literal("the old system recorded no status")),
        else_=sa.literal("the old system recorded the status ", sa.Text).concat(word),
    )
    row = {
        RUN.c.run_id: BATCH.c.run_id,
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
        RUN.c.step_count: _number_of(STEP, BATCH),
        RUN.c.tool_call_count: _number_of(TOOL, BATCH),
        RUN.c.created_at: _created(connection),
        RUN.c.updated_at: _updated(connection),
        RUN.c.finished_at: _updated(connection),
    }
    return connection.execute(sa.insert(RUN).from_select(*_from_batch(row))).rowcount


def count_again(connection: Connection) -> None:
    """Count the steps and tool calls of the batch's compatibility runs anew, from the rows."""
    connection.execute(
        sa.update(RUN)
        .where(RUN.c.run_id.in_(sa.select(BATCH.c.run_id)))
        .values(step_count=_number_of(STEP, RUN), tool_call_count=_number_of(TOOL, RUN))
    )


def _number_of(table: TableClause, run: TableClause) -> sa.ScalarSelect[int]:
    return (
        sa.select(sa.func.count())
        .select_from(table)
        .where(table.c.session_id == run.c.session_id, table.c.run_id == run.c.run_id)
        .correlate(run)
        .scalar_subquery()
    )


def _line(table: TableClause) -> sa.Subquery:
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
            table.c.id, BATCH.c.run_id, (last + place).label("sequence"), table.c.run_id.label("placed_in")
        )
        .join_from(BATCH, table, session == BATCH.c.session_id)
        .where(sa.or_(table.c.run_id.is_(None), table.c.run_id == BATCH.c.run_id))
        .subquery("rows")
    )
    return (
        sa.select(rows.c.id, rows.c.run_id, rows.c.sequence)
        .where(rows.c.placed_in.is_(None))
        .subquery("line")
    )


def _from_batch(
    row: Mapping[sa.ColumnClause[Any], ColumnElement[Any]],
) -> tuple[list[str], sa.Select[Any]]:
    rows = sa.select(*row.values()).join_from(BATCH, OLD, OLD.c.id == BATCH.c.id).order_by(OLD.c.id)
    return [column.name for column in row], rows


def _is_blank(text: ColumnElement[Any]) -> ColumnElement[bool]:
    return sa.func.trim(sa.func.coalesce(text, "")) == ""


def _created(connection: Connection) -> ColumnElement[Any]:
    return expressions.moment(connection, OLD.c.created_at, OLD.c.updated_at)


def _updated(connection: Connection) -> ColumnElement[Any]:
    """When the row last changed; never before it was made."""
    created = _created(connection)
    updated = expressions.moment(connection, OLD.c.updated_at, OLD.c.created_at)
    return sa.case((updated < created, created), else_=updated)
