"""A transaction on a connection of its own: the one boundary at which a driver's errors end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

from sqlalchemy.sql import Executable

from casenotes.adapters.sql.compiled import Compiled, compiled
from casenotes.adapters.sql.connections import Connection, Connections, Row
from casenotes.adapters.sql.dialect import Dialect
from casenotes.core.errors import LedgerUnavailable


class Transaction:
    """Runs statements. It begins with the first, and is rolled back at the end of its block unless committed.

    Every method may raise ``LedgerUnavailable``, and ``ValueError`` for a value that no column takes.
    """

    def __init__(self, connection: Connection, dialect: Dialect) -> None:
        self.dialect = dialect
        self._connection = connection
        self._begun = False
        self._ended = False

    async def all(self, statement: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Row]:
        """All rows."""
        made, arguments = self._prepared(statement, values)
        with translated(self.dialect):
            await self._begin()
            return made.finished(await self._connection.fetch(made.sql, arguments))

    async def alone(
        self, statement: Executable, values: Mapping[str, Any] | None = None
    ) -> tuple[Compiled, Sequence[Sequence[Any]]]:
        """All rows of a statement that reads, and is all that is asked: it sees one moment by itself.

        They are plain, and nothing in them is made ready: the statement's columns tell what is to be done.
        """
        made, arguments = self._prepared(statement, values)
        with translated(self.dialect):
            if not self._connection.takes_single_statements:
                await self._begin()
            return made, await self._connection.fetch_plain(made.sql, arguments)

    async def one(self, statement: Executable, values: Mapping[str, Any] | None = None) -> Row | None:
        """The first row, or ``None`` when there is none."""
        return next(iter(await self.all(statement, values)), None)

    async def run(self, statement: Executable, values: Mapping[str, Any] | None = None) -> int:
        """How many rows the statement wrote."""
        made, arguments = self._prepared(statement, values)
        with translated(self.dialect):
            await self._begin()
            return await self._connection.execute(made.sql, arguments)

    async def commit(self) -> None:
        """Make the work durable."""
        self._refuse_when_ended()
        if self._begun:
            with translated(self.dialect):
                await self._connection.commit()
            self._begun = False

    def end(self) -> None:
        """The block has ended."""
        self._ended = True

    def _prepared(
        self, statement: Executable, values: Mapping[str, Any] | None
    ) -> tuple[Compiled, list[Any]]:
        self._refuse_when_ended()
        given = values or {}
        made = compiled(statement, given, self.dialect.compiler)
        return made, made.arguments(given)

    async def _begin(self) -> None:
        if not self._begun:
            await self._connection.begin()
            self._begun = True

    def _refuse_when_ended(self) -> None:
        if self._ended:
            raise RuntimeError("the block of this ledger view or unit of work has ended")


class _Opening:
    """A transaction for a block. A class, as is the next: each statement passes both, and generators cost more."""

    __slots__ = ("_connections", "_dialect", "_lent", "_opened")

    def __init__(self, connections: Connections, dialect: Dialect) -> None:
        self._connections, self._dialect = connections, dialect

    async def __aenter__(self) -> Transaction:
        with translated(self._dialect):
            self._lent = self._connections.connection()
            connection = await self._lent.__aenter__()
        self._opened = Transaction(connection, self._dialect)
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        # What the block itself raises passes untranslated, and is none of the connection's business.
        self._opened.end()
        with translated(self._dialect):
            await self._lent.__aexit__(None, None, None)


def transaction(connections: Connections, dialect: Dialect) -> AbstractAsyncContextManager[Transaction]:
    """A transaction on a connection that is given back whatever happens in the block."""
    return _Opening(connections, dialect)


class _Translating:
    __slots__ = ("_dialect",)

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, OverflowError):
            raise ValueError("a number is too large for the ledger") from None
        is_drivers = type(error).__module__.partition(".")[0] == self._dialect.driver
        if isinstance(error, OSError) or (isinstance(error, Exception) and is_drivers):  # a TimeoutError too
            raise LedgerUnavailable(self._dialect.explain(error)) from None


def translated(dialect: Dialect) -> AbstractContextManager[None]:
    """Turn what a driver raises in the block into our own errors."""
    return _Translating(dialect)
