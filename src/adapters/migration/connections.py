"""Connections that migrate: how one is opened, and how the others are kept out meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError

from casenotes.core.errors import LedgerUnavailable

if TYPE_CHECKING:  # brings SQLAlchemy's whole ORM, which a file needs nothing of
    from sqlalchemy.ext.asyncio import AsyncEngine

T = TypeVar("T")

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

_BETWEEN_LOOKS = 10_000
"""After so many of SQLite's own instructions, a statement looks whether it is to stop: a few times a millisecond."""

_LOCK_NOT_AVAILABLE = "55P03"


async def done_on(database: str | URL | AsyncEngine, work: Callable[[Connection], T]) -> T:
    """What the work gives, done on a connection to the database. An engine that is given stays open."""
    if not isinstance(database, str | URL):
        async with database.connect() as connection:
            return await connection.run_sync(work)
    url = make_url(database)
    if url.get_backend_name() == "sqlite":
        return await _done_in_thread(url, work)
    engine = open_engine(url)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(work)
    finally:
        await engine.dispose()


async def _done_in_thread(url: URL, work: Callable[[Connection], T]) -> T:
    """The same for a file. Cancelled, it stops in the statement it is at, and is over when the thread is."""
    stop = Event()

    def done() -> T:
        engine = sa.create_engine(
            url.set(drivername="sqlite"),
            poolclass=sa.NullPool,
            connect_args={"timeout": BUSY_SECONDS},
            hide_parameters=True,
        )
        with engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.set_progress_handler(stop.is_set, _BETWEEN_LOOKS)
            return work(connection)

    with ThreadPoolExecutor(1, "casenotes-migration") as thread:
        doing = asyncio.get_running_loop().run_in_executor(thread, done)
        try:
            return await asyncio.shield(doing)
        finally:
            stop.set()
            while not doing.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([doing])


def open_engine(url: str | URL) -> AsyncEngine:
    """An engine on Postgres with one connection at a time, for a migration only. ``postgresql://`` will do."""
    from sqlalchemy.ext.asyncio import create_async_engine

    # Nothing is kept for a second use, so that a pooler that changes server connections does no harm.
    return create_async_engine(
        make_url(url).set(drivername="postgresql+asyncpg").difference_update_query(["pgbouncer"]),
        poolclass=sa.NullPool,
        connect_args={
            "timeout": CONNECT_SECONDS,
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: f"casenotes_{uuid4().hex}",
        },
        hide_parameters=True,
    )


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
