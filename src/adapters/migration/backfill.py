"""Placing the old system's rows in runs: one compatibility run for each historical session.

Can be run at any time after 0002 and any number of times, beside a service and the old system. It looks for what is
not placed yet, a batch of sessions at a time, each in a short transaction of its own, and the texts never leave the
database; killed at any moment, it goes on after the last whole batch.

Nothing is changed but: runs and chat sessions that are missing are made, and steps and tool calls without a run are
given to their session's compatibility run, whose counts and feedback follow. Rows of other runs are never touched.
"""

from __future__ import annotations

import sqlalchemy as sa
from attrs import frozen
from sqlalchemy import Connection
from sqlalchemy.sql import ColumnElement

from casenotes.adapters.migration import expressions, placement
from casenotes.adapters.migration.connections import exclusive
from casenotes.adapters.migration.placement import OLD, RUN, STEP, TOOL, Phase
from casenotes.adapters.migration.reports import Placed

BATCH = 10_000
"""Sessions placed by one batch of statements."""

PHASES = (placement.unplaced, placement.late)
"""What is placed first and last: a session takes its rows along, so that only late rows are left for the end."""

CASE = sa.table("case_library", sa.column("diagnosis_id"), sa.column("source"), sa.column("session_id"))


@frozen
class Batch:
    """What one batch placed, and the id of the last historical row it looked at."""

    placed: Placed
    last_id: int


def place_all(connection: Connection) -> Placed:
    """Place all that can be placed. The connection must not be in a transaction.

    Others are kept out for one batch at a time, and only when something waits: they may do the next one.
    """
    placed = Placed()
    for phase in PHASES:
        after = None
        while _is_waiting(connection, phase, after):
            with exclusive(connection):
                batch = place_next(connection, phase, after)
            if batch is None:  # another process was faster
                break
            placed, after = placed + batch.placed, batch.last_id
    with connection.begin():
        expressions.register(connection)
        late = _late_case(), _late_feedback(connection)
        late_case, late_feedback = (connection.scalar(sa.select(sa.exists().where(each))) for each in late)
    if late_case or late_feedback:
        with exclusive(connection):
            _take_over_cases_and_feedback(connection)
    return placed


def place_next(connection: Connection, phase: Phase, after: int | None) -> Batch | None:
    """Place what belongs to the phase's next ``BATCH`` historical rows, with ids over ``after``; ``None``: no more.

    Runs in the connection's transaction. A late row of a session that was placed before goes behind the rows that
    are there. A session whose run id a foreign run has taken stays unplaced.
    """
    expressions.register(connection)
    last = placement.gather(connection, phase, after, BATCH)
    placed = Placed() if last is None else _place(connection, phase)
    placement.forget_batch(connection)
    return None if last is None else Batch(placed, last)


def forget_new_runs(connection: Connection) -> None:
    """Remove the rows that only a run explains, before the columns that tell them from old ones go."""
    expressions.register(connection)
    for table in (STEP, TOOL):
        is_old = table.c.run_id == expressions.run_id(connection, table.c.session_id)
        connection.execute(sa.delete(table).where(table.c.run_id.is_not(None), ~is_old))
    connection.execute(sa.delete(CASE).where(CASE.c.source == "AUTO"))


def _place(connection: Connection, phase: Phase) -> Placed:
    if phase is placement.late:
        placed = Placed(steps=placement.place_steps(connection), tools=placement.place_tools(connection))
        placement.count_again(connection)
        return placed
    # Runs come last: they are made with their counts, not made and then written again.
    placement.insert_chat_sessions(connection)
    steps, tools = placement.place_steps(connection), placement.place_tools(connection)
    return Placed(placement.insert_runs(connection), steps, tools)


def _is_waiting(connection: Connection, phase: Phase, after: int | None) -> bool:
    with connection.begin():
        expressions.register(connection)
        return connection.scalar(placement.next_rows(phase(connection), after, 1)) is not None


def _take_over_cases_and_feedback(connection: Connection) -> None:
    expressions.register(connection)
    connection.execute(
        sa.update(CASE).where(_late_case()).values(source="HISTORICAL", session_id=CASE.c.diagnosis_id)
    )
    connection.execute(
        sa.update(RUN)
        .where(_late_feedback(connection))
        .values(feedback=OLD.c.feedback, feedback_comment=OLD.c.feedback_comment)
    )


def _late_case() -> ColumnElement[bool]:
    """A case that the old system added since 0002: it names no source, and a historical session."""
    return sa.and_(
        CASE.c.source == "MANUAL",
        CASE.c.session_id.is_(None),
        sa.exists().where(OLD.c.session_id == CASE.c.diagnosis_id),
    )


def _late_feedback(connection: Connection) -> ColumnElement[bool]:
    """A session was rated after it was placed, by the old system or by who had just found it without a run.

    A run that was rated itself knows when, and keeps that.
    """
    return sa.and_(
        OLD.c.feedback.is_not(None),
        placement.is_latest(connection),
        RUN.c.run_id == expressions.run_id(connection, OLD.c.session_id),
        RUN.c.session_id == OLD.c.session_id,
        RUN.c.feedback_at.is_(None),
        sa.or_(
            RUN.c.feedback.is_distinct_from(OLD.c.feedback),
            RUN.c.feedback_comment.is_distinct_from(OLD.c.feedback_comment),
        ),
    )
