"""Connections to an SQLite file: each lives in a thread of its own, which does one thing after the other."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, TypeAlias, TypeVar

from attrs import define, field

from casenotes.adapters.sql.connections import Row
from casenotes.adapters.sql.turns import Turns

T = TypeVar("T")

Open: TypeAlias = Callable[[], sqlite3.Connection]
Job: TypeAlias = Callable[[sqlite3.Connection], Any]

_MENDABLE: Final = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_READONLY,
    }
)
"""Errors after which the file is opened anew: it may have been mended, or another put in its place."""


class SqliteThread:
    """One connection, opened by the first job and used by one thread only.

    Jobs are done in the order in which they are given. Whoever stops waiting for one does not stop it.
    """

    def __init__(self, open_file: Open, name: str) -> None:
        self._open = open_file
        self._jobs: SimpleQueue[tuple[Job, asyncio.Future[Any], asyncio.AbstractEventLoop] | None] = (
            SimpleQueue()
        )
        self._connection: sqlite3.Connection | None = None
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._is_started = False
        self._is_stale = False

    def do(self, job: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Have a job done; the future is its outcome."""
        if not self._is_started:
            self._is_started = True
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((job, future, loop))
        return future

    async def close(self) -> None:
        """Close the connection once all jobs are done, and end the thread."""
        if self._is_started:
            closed = self.do(_nothing)
            self._jobs.put(None)
            with suppress(Exception):
                await closed
            self._thread.join()

    def _work(self) -> None:
        while (given := self._jobs.get()) is not None:
            job, future, loop = given
            result, fault = None, None
            try:
                if self._connection is None:
                    self._connection = self._open()
                result = job(self._connection)
            except BaseException as raised:
                fault = raised
                if isinstance(raised, sqlite3.Error):
                    self.judge(raised)
            if self._is_stale:
                self._disconnect()
            with suppress(RuntimeError):  # the loop is gone, and with it whoever waited
                loop.call_soon_threadsafe(_settle, future, result, fault)
            del given, job, future, loop, result, fault
        self._disconnect()

    def judge(self, error: sqlite3.Error) -> None:
        """Have the file opened anew after this job, if the error asks for it. For use inside the thread."""
        self._is_stale = self._is_stale or _primary(error) in _MENDABLE

    def _disconnect(self) -> None:
        self._is_stale = False
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


def _primary(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _nothing(_: sqlite3.Connection) -> None:
    return None


def _settle(future: asyncio.Future[Any], result: Any, fault: BaseException | None) -> None:
    if future.done():
        return
    if fault is None:
        future.set_result(result)
    else:
        future.set_exception(fault)


def fetch(connection: sqlite3.Connection, sql: str, arguments: Sequence[Any]) -> list[Row]:
    """The rows of a statement, each a dict of its own."""
    cursor = connection.execute(sql, arguments)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def fetch_plain(connection: sqlite3.Connection, sql: str, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows of a statement, each its values in the order of the columns."""
    return connection.execute(sql, arguments).fetchall()


def write(connection: sqlite3.Connection, sql: str, arguments: Sequence[Any]) -> int:
    """How many rows a statement wrote."""
    return connection.execute(sql, arguments).rowcount


def say(connection: sqlite3.Connection, words: str) -> None:
    """Begin or end a transaction, or a part of one."""
    connection.execute(words)


@define(eq=False)
class ThreadConnection:
    """``casenotes.adapters.sql.connections.Connection``, each method a job of the thread."""

    thread: SqliteThread
    beginning: str
    takes_single_statements: bool = True
    is_in_transaction: bool = field(default=False, init=False)

    async def begin(self) -> None:
        self.is_in_transaction = True  # from now on, though nobody may wait for it
        await self.thread.do(lambda connection: say(connection, self.beginning))

    async def fetch(self, sql: str, arguments: Sequence[Any]) -> list[Row]:
        return await self.thread.do(lambda connection: fetch(connection, sql, arguments))

    async def fetch_plain(self, sql: str, arguments: Sequence[Any]) -> Sequence[Sequence[Any]]:
        return await self.thread.do(lambda connection: fetch_plain(connection, sql, arguments))

    async def execute(self, sql: str, arguments: Sequence[Any]) -> int:
        return await self.thread.do(lambda connection: write(connection, sql, arguments))

    async def commit(self) -> None:
        await self.thread.do(lambda connection: say(connection, "COMMIT"))
        self.is_in_transaction = False

    async def undo(self) -> None:
        await self.thread.do(roll_back)


@define(eq=False)
class InnerConnection:
    """The same inside the thread: what is awaited is done at once. Its transaction is begun and ended by others."""

    _thread: SqliteThread
    _connection: sqlite3.Connection
    takes_single_statements: bool = True

    async def begin(self) -> None:
        return None

    async def fetch(self, sql: str, arguments: Sequence[Any]) -> list[Row]:
        try:
            return fetch(self._connection, sql, arguments)
        except sqlite3.Error as error:
            self._thread.judge(error)
            raise

    async def fetch_plain(self, sql: str, arguments: Sequence[Any]) -> Sequence[Sequence[Any]]:
        try:
            return fetch_plain(self._connection, sql, arguments)
        except sqlite3.Error as error:
            self._thread.judge(error)
            raise

    async def execute(self, sql: str, arguments: Sequence[Any]) -> int:
        try:
            return write(self._connection, sql, arguments)
        except sqlite3.Error as error:
            self._thread.judge(error)
            raise

    async def commit(self) -> None:
        raise RuntimeError("the work is committed by whoever was given it")


def roll_back(connection: sqlite3.Connection) -> None:
    """Undo what was begun and not committed."""
    if connection.in_transaction:
        say(connection, "ROLLBACK")


@define(eq=False)
class SqliteConnections:
    """``casenotes.adapters.sql.connections.Connections`` to one file: threads, as many as are needed at once.

    At most ``size``; one that is not free within ``turn_seconds`` is not waited for any longer.
    """

    name: str
    beginning: str
    size: int
    turn_seconds: float
    open_file: Open
    _turns: Turns = field(init=False)
    _free: list[SqliteThread] = field(factory=list, init=False)
    _all: list[SqliteThread] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        busy = "the ledger is busy: other work did not end in time"
        self._turns = Turns(self.size, self.turn_seconds, busy)

    @property
    def lent(self) -> int:
        """How many connections are out at the moment."""
        return self._turns.out

    @asynccontextmanager
    async def thread(self) -> AsyncIterator[SqliteThread]:
        """A thread for the length of the block."""
        await self._turns.take()
        thread = self._free.pop() if self._free else self._made()
        try:
            yield thread
        finally:
            self._free.append(thread)
            self._turns.give_back()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[ThreadConnection]:
        async with self.thread() as thread:
            connection = ThreadConnection(thread, self.beginning)
            try:
                yield connection
            finally:
                if connection.is_in_transaction:
                    # Jobs keep their order: whoever has the thread next finds this done, wait for it or not.
                    await asyncio.shield(connection.undo())

    async def close(self) -> None:
        threads, self._all, self._free = self._all, [], []
        for thread in threads:
            await thread.close()

    def _made(self) -> SqliteThread:
        thread = SqliteThread(self.open_file, f"casenotes-{self.name}-{len(self._all) + 1}")
        self._all.append(thread)
        return thread
