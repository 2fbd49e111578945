"""A transaction on a connection of its own: the one boundary at which a driver's errors end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import CursorResult
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.sql import Executable

from casenotes.adapters.rows import AnyRow, Row
from casenotes.adapters.sql.dialect import Dialect
from casenotes.core.errors import LedgerUnavailable


class Transaction:
    """Runs statements. It begins with the first, and is rolled back at the end of its block unless committed.

    Every method may raise ``LedgerUnavailable``, and ``ValueError`` for a value that no column takes.
    """

    def __init__(self, connection: AsyncConnection, dialect: Dialect) -> None:
        self.dialect = dialect
        self._connection = connection

    async def all(self, statement: Executable, values: AnyRow | None = None) -> Sequence[Row]:
        """All rows."""
        result = await self._execute(statement, values)
        names = tuple(result.keys())
        return [dict(zip(names, row, strict=True)) for row in result]

    async def one(self, statement: Executable, values: AnyRow | None = None) -> Row | None:
        """The first row, or ``None`` when there is none."""
        return next(iter(await self.all(statement, values)), None)

    async def run(self, statement: Executable, values: AnyRow | None = None) -> int:
        """How many rows the statement wrote."""
        result = await self._execute(statement, values)
        return result.rowcount

    async def has_table(self, name: str) -> bool:
        """Whether the database has a table of this name."""
        with _translated(self.dialect):
            return await self._connection.run_sync(lambda connection: sa.inspect(connection).has_table(name))

    async def commit(self) -> None:
        """Make the work durable."""
        self._refuse_when_ended()
        with _translated(self.dialect):
            await self._connection.commit()

    async def _execute(self, statement: Executable, values: AnyRow | None) -> CursorResult[Any]:
        self._refuse_when_ended()
        with _translated(self.dialect):
            return await self._connection.execute(statement, values)

    def _refuse_when_ended(self) -> None:
        if self._connection.closed:
            raise RuntimeError("the block of this ledger view or unit of work has ended")


@asynccontextmanager
async def transaction(engine: AsyncEngine, dialect: Dialect) -> AsyncIterator[Transaction]:
    """A transaction on a connection from the engine's pool, which gets it back whatever happens in the block."""
    # Entered and left by hand, so that what the block itself raises passes untranslated.
    stack = AsyncExitStack()
    try:
        with _translated(dialect):
            connection = await stack.enter_async_context(engine.connect())
    except exc.InvalidRequestError:
        raise LedgerUnavailable("the ledger's database closes each connection at once") from None
    try:
        yield Transaction(connection, dialect)
    finally:
        with _translated(dialect):
            await stack.aclose()


@contextmanager
def _translated(dialect: Dialect) -> Iterator[None]:
    try:
        yield
    except exc.DBAPIError as error:
        raise LedgerUnavailable(dialect.explain(error.orig or error)) from None
    except exc.StatementError as error:
        if isinstance(error.orig, ValueError):
            raise ValueError(str(error.orig)) from None
        raise
    except exc.PendingRollbackError:
        raise LedgerUnavailable("the ledger's connection was lost earlier in this block") from None
    except exc.TimeoutError:
        raise LedgerUnavailable("the ledger is busy: no connection became free in time") from None
    except OverflowError:
        raise ValueError("a number is too large for the ledger") from None
    except OSError as error:
        raise LedgerUnavailable(dialect.explain(error)) from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] != dialect.driver:
            raise
        raise LedgerUnavailable(dialect.explain(error)) from None
