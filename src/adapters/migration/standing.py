"""Telling which of the old system's rows wait to be placed in runs, and which cannot be. Reads only."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.sql import ColumnElement, TableClause

from casenotes.adapters.migration import expressions, placement
from casenotes.adapters.migration.placement import OLD, STEP, TOOL
from casenotes.adapters.migration.reports import Leftovers, Placed, Rows

SAMPLE = 20
SAMPLE_LENGTH = 200
"""How many session ids a report names, and how much of each."""


def waiting(connection: Connection, *, has_runs: bool) -> Placed:
    """How many rows the backfill would place. Without ``has_runs`` the database is still at 0001."""
    expressions.register(connection)
    unplaced = (
        placement.unplaced(connection)
        if has_runs
        else sa.select(OLD.c.id).where(placement.is_latest(connection))
    )
    steps, tools = (
        connection.scalar(
            sa.select(sa.func.count())
            .select_from(table)
            .where(_in_no_run(table, has_runs), _of_a_session(connection, table, has_runs))
        )
        or 0
        for table in (STEP, TOOL)
    )
    sessions = connection.scalar(sa.select(sa.func.count()).select_from(unplaced.subquery())) or 0
    return Placed(sessions, steps, tools)


def leftovers(connection: Connection, *, has_runs: bool) -> Leftovers:
    """The rows that the backfill cannot place."""
    expressions.register(connection)
    steps, tools = (
        _rows(
            connection,
            table,
            sa.and_(_in_no_run(table, has_runs), ~_of_a_session(connection, table, has_runs)),
        )
        for table in (STEP, TOOL)
    )
    return Leftovers(
        sessions=_rows(connection, OLD, _is_shut_out(connection)) if has_runs else Rows(),
        steps=steps,
        tools=tools,
        duplicates=_duplicates(connection),
    )


def _in_no_run(table: TableClause, has_runs: bool) -> ColumnElement[bool]:
    return table.c.run_id.is_(None) if has_runs else sa.true()


def _of_a_session(connection: Connection, table: TableClause, has_runs: bool) -> ColumnElement[bool]:
    # EXISTS, for Postgres makes no join of NOT IN.
    session = sa.exists().where(OLD.c.session_id == table.c.session_id)
    return session.where(~_is_taken(connection)) if has_runs else session


def _is_taken(connection: Connection) -> ColumnElement[bool]:
    """A run of another session has the id of the session's compatibility run."""
    return sa.and_(placement.has_run_id(connection), ~placement.is_placed(connection))


def _is_shut_out(connection: Connection) -> ColumnElement[bool]:
    return sa.and_(_is_taken(connection), placement.is_latest(connection))


def _duplicates(connection: Connection) -> Rows:
    number, distinct = connection.execute(
        sa.select(sa.func.count(), sa.func.count(OLD.c.session_id.distinct()))
    ).one()
    return _rows(connection, OLD, ~placement.is_latest(connection)) if number > distinct else Rows()


def _rows(connection: Connection, table: TableClause, which: ColumnElement[bool]) -> Rows:
    number = connection.scalar(sa.select(sa.func.count()).select_from(table).where(which)) or 0
    if not number:
        return Rows()
    start = sa.func.substr(table.c.session_id, 1, SAMPLE_LENGTH, type_=sa.Text).label("start")
    ids = sa.select(start).where(which).distinct().order_by("start").limit(SAMPLE)
    return Rows(number, tuple(connection.scalars(ids)))
