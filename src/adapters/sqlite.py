"""The ledger in an SQLite file: one writer at a time, readers beside it, every commit on the disk."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Final

import aiosqlite
import sqlalchemy as sa
from attrs import field, frozen
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.engine.interfaces import AdaptedConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from casenotes.adapters.migration import EXPECTED_REVISION
from casenotes.adapters.sql.dialect import SQLITE
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.core.errors import InvalidSettings, LedgerUnavailable
from casenotes.core.text import Json, json_text

BUSY_SECONDS: Final = 5
"""How long a statement waits for another process that holds the file."""

TURN_SECONDS: Final = 30
"""How long a unit of work, or a view, waits for the others of this process."""

READERS: Final = 8

_SETTINGS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
)


def open_ledger(url: str, *, expected_revision: str = EXPECTED_REVISION) -> SqlLedger:
    """The ledger in the file that the URL names (``sqlite:///path``); the file must be there, with its tables.

    Nothing is opened yet. Raises ``InvalidSettings`` for a URL that names no file.
    """
    file = ledger_file(url)
    return SqlLedger(
        writing=_engine(file, begin="BEGIN IMMEDIATE", settings=_SETTINGS, connections=1),
        reading=_engine(
            file, begin="BEGIN", settings=(*_SETTINGS, "PRAGMA query_only = ON"), connections=READERS
        ),
        dialect=SQLITE,
        expected_revision=expected_revision,
        turn=WritersTurn(),
    )


def ledger_file(url: str) -> Path:
    """The file that a ``sqlite:///path`` or ``sqlite+aiosqlite:///path`` URL names, as an absolute path.

    Raises ``InvalidSettings`` for another kind of URL and for one without a file.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InvalidSettings("the ledger's URL cannot be read: sqlite:///path is expected") from None
    if parsed.drivername not in ("sqlite", "sqlite+aiosqlite"):
        raise InvalidSettings(f"not an SQLite URL: {parsed.drivername}: sqlite:///path is expected")
    if not parsed.database or parsed.database.startswith((":memory:", "file:")):
        raise InvalidSettings("the ledger's URL names no file: sqlite:///path is expected (or memory://)")
    if parsed.query:
        raise InvalidSettings("the ledger's SQLite URL takes no parameters")
    return Path(parsed.database).absolute()


@frozen(eq=False)
class WritersTurn:
    """Lets one unit of work through at a time, first come, first served.

    SQLite's own waiting is unfair and blind: under many writers somebody would meet ``database is locked``.
    """

    _lock: asyncio.Lock = field(factory=asyncio.Lock)

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._lock.acquire()
        except TimeoutError:
            raise LedgerUnavailable("the ledger is busy: other work did not end in time") from None
        try:
            yield
        finally:
            self._lock.release()


def _engine(file: Path, *, begin: str, settings: tuple[str, ...], connections: int) -> AsyncEngine:
    # mode=rw: a file that was moved away must be an error, not a new and empty ledger.
    url = URL.create("sqlite+aiosqlite", database=file.as_uri(), query={"uri": "true", "mode": "rw"})
    engine = create_async_engine(
        url,
        connect_args={
            "isolation_level": None,
            "timeout": BUSY_SECONDS,
        },  # None: the driver begins nothing itself
        pool_size=connections,
        max_overflow=0,
        pool_timeout=TURN_SECONDS,
        json_serializer=json_text,
        json_deserializer=_json_or_text,
        hide_parameters=True,
    )

    @sa.event.listens_for(engine.sync_engine, "do_connect")
    def _look_first(*_: object) -> None:
        # Told here, for a connection that fails in aiosqlite leaves a thread that outlives its event loop.
        if not file.is_file() or not os.access(file, os.R_OK):
            raise LedgerUnavailable("the ledger's file is not there, or may not be read")

    @sa.event.listens_for(engine.sync_engine, "connect")
    def _set(connection: AdaptedConnection, _: ConnectionPoolEntry) -> None:
        connection.run_async(lambda driver: _prepare(driver, settings))

    @sa.event.listens_for(engine.sync_engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


async def _prepare(connection: aiosqlite.Connection, settings: tuple[str, ...]) -> None:
    await _log_ahead(connection)
    for setting in settings:
        await connection.execute(setting)


async def _log_ahead(connection: aiosqlite.Connection) -> None:
    """Switch the file to WAL, which it then keeps.

    Of several that do so at once, SQLite lets one and refuses the others without waiting: they try again.
    """
    end = monotonic() + BUSY_SECONDS
    while True:
        try:
            await connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > end:
                raise
        await asyncio.sleep(0.02)


def _json_or_text(stored: str) -> Json:
    """A JSON column's value. An adopted file may hold any text there: what is no JSON is read as a string."""
    try:
        value: Json = json.loads(stored, parse_constant=str)
    except (ValueError, RecursionError, TypeError):
        return str(stored)
    return value
