"""Connections that migrate: how one is opened, and how the others are kept out meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from casenotes.core.errors import LedgerUnavailable

MIGRATION_LOCK = int.from_bytes(b"casenote", "big")
"""The key of the advisory lock that a migrating transaction holds on Postgres: 7161131761977488485.

Locks of this kind belong to one database, and those of a transaction go with it: none is left by a process that was
killed, nor by a pooler that gives the next transaction another server connection.
"""

BUSY_SECONDS = 30.0
"""How long a migration waits for another process that holds the file: another migration may be at work."""

TURN_SECONDS = 900.0
"""How long a migration on Postgres waits for another one: for one revision or batch of it, not for the whole."""

LOCK_SECONDS = 30.0
"""How long it waits there for a table or a row. While it waits for a table, new work on that table waits too."""

CONNECT_SECONDS = 10.0

_LOCK_NOT_AVAILABLE = "55P03"
_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
}


def open_engine(url: str | URL, busy_seconds: float = BUSY_SECONDS) -> AsyncEngine:
    """An engine with one connection at a time, for a migration only. ``sqlite:///`` and ``postgresql://`` will do."""
    parsed = make_url(url)
    parsed = parsed.set(drivername=_DRIVERS.get(parsed.drivername, parsed.drivername))
    arguments: dict[str, Any] = {"timeout": busy_seconds}
    if parsed.get_backend_name() == "postgresql":
        parsed = parsed.difference_update_query(["pgbouncer"])
        # Nothing is kept for a second use, so that a pooler that changes server connections does no harm.
        arguments = {
            "timeout": CONNECT_SECONDS,
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: f"casenotes_{uuid4().hex}",
        }
    return create_async_engine(parsed, poolclass=sa.NullPool, connect_args=arguments, hide_parameters=True)


def file_of(url: URL) -> Path | None:
    """The file of an SQLite database; ``None`` for one in memory or named by a URI, and for other databases."""
    name = url.database
    if url.get_backend_name() != "sqlite" or not name or name.startswith((":memory:", "file:")):
        return None
    return Path(name)


def named(url: URL) -> str:
    """The database in words that are safe to show."""
    if url.get_backend_name() == "sqlite":
        return f"the database file {url.database or ':memory:'}"
    host = url.host or url.query.get("host") or "a local socket"
    return (
        f"the database {url.database or url.username} on {host if isinstance(host, str) else ', '.join(host)}"
    )


@contextmanager
def exclusive(connection: Connection) -> Iterator[None]:
    """One transaction, DDL included, during which nobody else migrates this database.

    Commits on leaving, rolls everything back on an error. SQLite: ``BEGIN IMMEDIATE``, waiting as long as the
    connection's busy timeout. Postgres: an advisory lock of the transaction, waiting ``TURN_SECONDS``; then it sees
    all that the others committed. The connection must not be in a transaction yet.
    """
    with connection.begin():
        match connection.dialect.name:
            case "sqlite":
                _begin_immediate(connection)
            case "postgresql":
                _take_turn(connection)
        yield


def _take_turn(connection: Connection) -> None:
    # A snapshot from before the wait would not show what the others did.
    connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    # Old tables may hold times without a zone. They are UTC, whatever the server's zone is.
    connection.exec_driver_sql("SET LOCAL TIME ZONE 'UTC'")
    connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
    _wait_at_most(connection, TURN_SECONDS)
    try:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
            raise
        raise LedgerUnavailable(
            f"{named(connection.engine.url)} is being migrated by another process, which has not come to an end of a "
            f"step for {TURN_SECONDS:g} seconds; see whether it still works, then try again"
        ) from error
    _wait_at_most(connection, LOCK_SECONDS)


def _wait_at_most(connection: Connection, seconds: float) -> None:
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {round(seconds * 1000)}")


def _begin_immediate(connection: Connection) -> None:
    # The driver begins by itself, if at all, before the first INSERT: too late for DDL. The engine that was given may
    # have begun already, deferred: then the lock would come at the first write, where waiting for it can fail.
    driver: Any = connection.connection.driver_connection
    if driver.in_transaction:
        connection.exec_driver_sql("ROLLBACK")
    connection.exec_driver_sql("BEGIN IMMEDIATE")
