"""Runs the revisions on the connection in ``attributes["connection"]``, else on ``sqlalchemy.url``.

A connection that is given inside a transaction is used as it is: its owner commits. Otherwise all the revisions of
one command are one transaction of their own, on SQLite too, and the old system's rows are placed in runs after it.
"""

from __future__ import annotations

import asyncio

from alembic import context
from sqlalchemy import Connection

from casenotes.adapters.migration import backfill, scripts
from casenotes.adapters.migration.connections import done_on, exclusive
from casenotes.adapters.sql.tables import metadata


def run_offline() -> None:
    context.configure(
        url=context.config.get_main_option("sqlalchemy.url"), target_metadata=metadata, literal_binds=True
    )
    with context.begin_transaction():
        context.run_migrations()


def run_within(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata)
    with context.begin_transaction():
        context.run_migrations()


def run_on(connection: Connection) -> None:
    if connection.in_transaction():
        run_within(connection)
        return
    with exclusive(connection):
        before = scripts.current_revision(connection)
        run_within(connection)
        after = scripts.current_revision(connection)
    if after is not None and scripts.has_runs(after) and scripts.pending(before, after):
        backfill.place_all(connection)


def run() -> None:
    given: Connection | None = context.config.attributes.get("connection")
    if context.is_offline_mode():
        run_offline()
    elif given is not None:
        run_on(given)
    elif url := context.config.get_main_option("sqlalchemy.url"):
        asyncio.run(done_on(url, run_on))
    else:
        raise SystemExit("no database: run `casenotes migrate`, or give alembic a sqlalchemy.url")


run()
