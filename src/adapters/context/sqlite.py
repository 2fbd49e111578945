"""The conversation store in an SQLite file: survives a restart, and may be shared by the processes of one host."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from os import PathLike, fspath
from typing import Final, TypeVar

from casenotes.adapters.context.retention import (
    DEFAULT_TTL_SECONDS,
    DEFAULT_WINDOW,
    PURGE_AT_ONCE,
    Retention,
    now_in_utc,
)
from casenotes.adapters.write_ahead import log_ahead
from casenotes.core.errors import ContextUnavailable
from casenotes.core.model import MessagePair
from casenotes.ports.ambient import Clock

Result = TypeVar("Result")

_BUSY_SECONDS: Final = 5.0
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_SETTINGS: Final = ("PRAGMA synchronous = NORMAL", "PRAGMA foreign_keys = ON")
_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS conversation (
        session_id TEXT NOT NULL PRIMARY KEY,
        expires_at INTEGER NOT NULL -- microseconds since 1970, UTC
    ) WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS ix_conversation_expiry ON conversation (expires_at)",
    """
    CREATE TABLE IF NOT EXISTS message_pair (
        session_id TEXT NOT NULL REFERENCES conversation (session_id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        question TEXT NOT NULL,
        answer TEXT NOT NULL,
        PRIMARY KEY (session_id, position)
    ) WITHOUT ROWID
    """,
)
_RECALL: Final = """
    SELECT question, answer FROM message_pair JOIN conversation USING (session_id)
    WHERE session_id = ? AND expires_at > ? ORDER BY position DESC LIMIT ?
"""
_FORGET: Final = "DELETE FROM conversation WHERE session_id = ?"
_FORGET_EXPIRED: Final = "DELETE FROM conversation WHERE session_id = ? AND expires_at <= ?"
_PURGE: Final = """
    DELETE FROM conversation WHERE session_id IN
    (SELECT session_id FROM conversation WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)
"""
_REMEMBER: Final = """
    INSERT INTO conversation (session_id, expires_at) VALUES (?, ?)
    ON CONFLICT (session_id) DO UPDATE SET expires_at = excluded.expires_at
"""
_ADD: Final = """
    INSERT INTO message_pair (session_id, position, question, answer)
    SELECT ?1, coalesce(max(position), 0) + 1, ?2, ?3 FROM message_pair WHERE session_id = ?1
"""
_TRIM: Final = """
    DELETE FROM message_pair WHERE session_id = ?1 AND position <=
    (SELECT max(position) FROM message_pair WHERE session_id = ?1) - ?2
"""


class SqliteContextStore:
    """``casenotes.ports.context.ContextStore``.

    One thread of its own does one whole transaction at a time: a caller that is cancelled stops waiting, and
    can leave nothing half done. The file is opened, and its tables are made, by whatever is asked first.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        window: int = DEFAULT_WINDOW,
        ttl: float = DEFAULT_TTL_SECONDS,
        clock: Clock = now_in_utc,
    ) -> None:
        self._path = fspath(path)
        self._retention = Retention(window, ttl, clock)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="casenotes-context")
        self._connection: sqlite3.Connection | None = None  # touched by the thread only
        self._closed = False

    async def recall(self, session_id: str) -> Sequence[MessagePair]:
        now, window = _microseconds(self._retention.now()), self._retention.window

        def read(connection: sqlite3.Connection) -> list[tuple[str, str]]:
            return connection.execute(_RECALL, (session_id, now, window)).fetchall()

        newest_first = await self._run(read)
        return [MessagePair(question, answer) for question, answer in reversed(newest_first)]

    async def append(self, session_id: str, pair: MessagePair) -> None:
        now, expiry = _microseconds(self._retention.now()), _microseconds(self._retention.expiry())

        def write(connection: sqlite3.Connection) -> None:
            with _transaction(connection):
                connection.execute(_FORGET_EXPIRED, (session_id, now))
                connection.execute(_REMEMBER, (session_id, expiry))
                connection.execute(_ADD, (session_id, pair.question, pair.answer))
                connection.execute(_TRIM, (session_id, self._retention.window))
                connection.execute(_PURGE, (now, PURGE_AT_ONCE))

        await self._run(write)

    async def clear(self, session_id: str) -> None:
        def write(connection: sqlite3.Connection) -> None:
            with _transaction(connection):
                connection.execute(_FORGET, (session_id,))

        await self._run(write)

    async def ping(self) -> None:
        def read(connection: sqlite3.Connection) -> None:
            connection.execute("SELECT 1 FROM conversation LIMIT 1").fetchall()

        await self._run(read)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        finally:
            self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        if self._closed:
            raise ContextUnavailable("the conversation store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._guarded, work)

    def _guarded(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        try:
            if self._connection is None:
                self._connection = _connect(self._path)
            return work(self._connection)
        except sqlite3.Error as error:
            self._disconnect()  # the next caller opens the file anew: it may have been mended or replaced
            code = getattr(error, "sqlite_errorname", "SQLITE_MISUSE")
            raise ContextUnavailable(f"the conversation store's file cannot be used ({code})") from None

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        log_ahead(connection, _BUSY_SECONDS)
        for setting in _SETTINGS:
            connection.execute(setting)
        with _transaction(connection):
            for table in _TABLES:
                connection.execute(table)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)
