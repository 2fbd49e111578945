"""Placing the old system's rows in runs: one compatibility run for each historical session.

Can be run at any time and any number of times. It looks for what is not placed yet, a batch of sessions at a time,
and the texts never leave the database; killed between two batches, it goes on where it was.

Nothing is changed but: runs and chat sessions that are missing are made, and steps and tool calls without a run are
given to their session's compatibility run, whose counts follow. Rows of other runs are never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import sqlalchemy as sa
from attrs import frozen
from sqlalchemy import Connection
from sqlalchemy.sql import ColumnElement, TableClause

from casenotes.adapters.migration import expressions, placement
from casenotes.adapters.migration.placement import CASE, OLD, STEP, TOOL
from casenotes.adapters.migration.reports import Leftovers, Placed, Rows

BATCH = 1000
"""Sessions placed by one batch of statements."""

SAMPLE = 20
SAMPLE_LENGTH = 200
"""How many session ids a report names, and how much of each."""


PHASES = (placement.unplaced, placement.late)
"""What is placed first and last: a session takes its rows along, so that only late rows are left for the end."""

Phase: TypeAlias = Callable[[Connection], sa.Select[int]]


@frozen
class Batch:
    """What one batch placed, and the id of the last historical row it looked at."""

    placed: Placed
    last_id: int


def place_all(connection: Connection) -> Placed:
    """Place all that can be placed, in the connection's transaction."""
    placed = Placed()
    for phase in PHASES:
        after = None
        while (batch := place_next(connection, phase, after)) is not None:
            placed, after = placed + batch.placed, batch.last_id
    return placed


def place_next(connection: Connection, phase: Phase, after: int | None) -> Batch | None:
    """Place what belongs to the phase's next ``BATCH`` historical rows, with ids over ``after``; ``None``: no more.

    Runs in the connection's transaction. A late row of a session that was placed before goes behind the rows that
    are there. A session whose run id a foreign run has taken stays unplaced.
    """
    ids = _next_ids(connection, phase, after, BATCH)
    if not ids:
        return None
    placement.insert_chat_sessions(connection, ids)
    placed = Placed(
        sessions=placement.insert_runs(connection, ids),
        steps=placement.place_steps(connection, ids),
        tools=placement.place_tools(connection, ids),
    )
    placement.count(connection, ids)
    return Batch(placed, ids[-1])


def is_waiting(connection: Connection, phase: Phase, after: int | None) -> bool:
    """Whether ``place_next`` would find something. Reads only."""
    return bool(_next_ids(connection, phase, after, 1))


def mark_late_cases(connection: Connection) -> int:
    """Mark the cases that the old system added since 0002: they name no source, and a historical session."""
    statement = (
        sa.update(CASE).where(_late_case()).values(source="HISTORICAL", session_id=CASE.c.diagnosis_id)
    )
    return connection.execute(statement).rowcount


def has_late_cases(connection: Connection) -> bool:
    """Whether ``mark_late_cases`` would find something. Reads only."""
    return bool(connection.scalar(sa.select(sa.exists().where(_late_case()))))


def leftovers(connection: Connection) -> Leftovers:
    """What is in no run. Reads only; needs the tables of 0002."""
    expressions.register(connection)
    number, distinct = connection.execute(
        sa.select(sa.func.count(), sa.func.count(OLD.c.session_id.distinct()))
    ).one()
    latest = placement.is_latest(connection)
    return Leftovers(
        sessions=_rows(connection, OLD, sa.and_(~placement.is_placed(connection), latest)),
        steps=_rows(connection, STEP, STEP.c.run_id.is_(None)),
        tools=_rows(connection, TOOL, TOOL.c.run_id.is_(None)),
        duplicates=_rows(connection, OLD, ~latest) if number > distinct else Rows(),
    )


def everything(connection: Connection) -> Leftovers:
    """The same of a database that is still at 0001: all there is."""
    sessions, steps, tools = (_rows(connection, table, sa.true()) for table in (OLD, STEP, TOOL))
    return Leftovers(sessions, steps, tools)


def forget_new_runs(connection: Connection) -> None:
    """Remove the rows that only a run explains, before the columns that tell them from old ones go."""
    expressions.register(connection)
    for table in (STEP, TOOL):
        is_old = table.c.run_id == expressions.run_id(connection, table.c.session_id)
        connection.execute(sa.delete(table).where(table.c.run_id.is_not(None), ~is_old))
    connection.execute(sa.delete(CASE).where(CASE.c.source == "AUTO"))


def _next_ids(connection: Connection, phase: Phase, after: int | None, limit: int) -> Sequence[int]:
    expressions.register(connection)
    ids = phase(connection).order_by(OLD.c.id).limit(limit)
    return connection.scalars(ids if after is None else ids.where(OLD.c.id > after)).all()


def _late_case() -> ColumnElement[bool]:
    return sa.and_(
        CASE.c.source == "MANUAL",
        CASE.c.session_id.is_(None),
        sa.exists().where(OLD.c.session_id == CASE.c.diagnosis_id),
    )


def _rows(connection: Connection, table: TableClause, which: ColumnElement[bool]) -> Rows:
    number = connection.scalar(sa.select(sa.func.count()).select_from(table).where(which)) or 0
    if not number:
        return Rows()
    start = sa.func.substr(table.c.session_id, 1, SAMPLE_LENGTH, type_=sa.Text).label("start")
    ids = sa.select(start).where(which).distinct().order_by("start").limit(SAMPLE)
    return Rows(number, tuple(connection.scalars(ids)))
