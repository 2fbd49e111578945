"""Connections to PostgreSQL: a pool of them, each lent to one transaction at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]
from attrs import define, field, frozen

from casenotes.adapters.sql.connections import Row
from casenotes.core.errors import LedgerUnavailable

_LAST_WORDS_SECONDS: Final = 5
"""How long an unfinished transaction's end, and the closing of the pool, may take before connections are dropped."""


@define(eq=False)
class PostgresConnection:
    """``casenotes.adapters.sql.connections.Connection``. ``is_lost`` once nobody knows what it is in the middle of."""

    _driver: Any
    _beginning: str
    takes_single_statements: bool
    is_lost: bool = field(default=False, init=False)

    async def begin(self) -> None:
        await self.told(self._beginning)

    async def fetch(self, sql: str, arguments: Sequence[Any]) -> list[Row]:
        try:
            records = await self._driver.fetch(sql, *arguments)
        except BaseException as fault:
            self._judge(fault)
            raise
        return [dict(record) for record in records]

    async def execute(self, sql: str, arguments: Sequence[Any]) -> int:
        status = await self.told(sql, *arguments)
        return int(status.rpartition(" ")[2])

    async def commit(self) -> None:
        if await self.told("COMMIT") != "COMMIT":
            raise LedgerUnavailable("the ledger's database undid the work instead of keeping it")

    async def told(self, sql: str, *arguments: Any) -> str:
        """What the server said when a statement was done."""
        try:
            status: str = await self._driver.execute(sql, *arguments)
        except BaseException as fault:
            self._judge(fault)
            raise
        return status

    def _judge(self, fault: BaseException) -> None:
        # What the server refused leaves the connection in order. A cancellation, a silence or a broken wire does not.
        refused = isinstance(fault, asyncpg.PostgresError) and not isinstance(
            fault, asyncpg.PostgresConnectionError
        )
        value_is_wrong = isinstance(fault, ValueError | OverflowError | TypeError)
        self.is_lost = self.is_lost or not (refused or value_is_wrong)


@define(eq=False)
class PostgresPool:
    """All connections of one ledger. Each is opened when it is needed, in the event loop of whoever asks first.

    At most ``size`` are open at once; one that is not free within ``turn_seconds`` is not waited for any longer.
    Behind a pooler even a single statement needs a transaction, for its parts may else go to different servers.
    """

    size: int
    turn_seconds: float
    arguments: Mapping[str, Any]
    is_behind_pooler: bool = False
    _pool: Any = field(default=None, init=False)
    _turns: asyncio.Semaphore = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._turns = asyncio.Semaphore(self.size)

    @property
    def lent(self) -> int:
        """How many connections are out at the moment."""
        return self.size - self._turns._value

    @asynccontextmanager
    async def lend(self, beginning: str) -> AsyncIterator[PostgresConnection]:
        """A connection whose transactions begin in this way; what is not committed in the block is undone."""
        await self._take_turn()
        try:
            pool = await self._opened()
            driver = await pool.acquire()
            connection = PostgresConnection(driver, beginning, not self.is_behind_pooler)
            try:
                yield connection
            finally:
                await self._take_back(driver, connection)
        finally:
            self._turns.release()

    async def close(self) -> None:
        """Close all connections, those that are out as soon as they are given back, or after some seconds."""
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await pool.close()
            except TimeoutError:
                pool.terminate()

    async def _take_turn(self) -> None:
        if not self._turns.locked():
            await self._turns.acquire()
            return
        try:
            async with asyncio.timeout(self.turn_seconds):
                await self._turns.acquire()
        except TimeoutError:
            raise LedgerUnavailable("the ledger is busy: no connection became free in time") from None

    async def _opened(self) -> Any:
        if self._pool is None:
            self._pool = asyncpg.create_pool(
                min_size=0, max_size=self.size, init=_prepare, reset=_leave, **self.arguments
            )
        return await self._pool

    async def _take_back(self, driver: Any, connection: PostgresConnection) -> None:
        """Undo what was left open, and never let a connection go back in a state that nobody knows."""
        try:
            if not connection.is_lost and driver.is_in_transaction():
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await connection.told("ROLLBACK")
        except BaseException:
            connection.is_lost = True
            raise
        finally:
            if connection.is_lost:
                driver.terminate()
            await self._pool.release(driver)


@frozen
class PostgresConnections:
    """``casenotes.adapters.sql.connections.Connections``: those of a pool that begin their transactions so."""

    pool: PostgresPool
    beginning: str

    def connection(self) -> AbstractAsyncContextManager[PostgresConnection]:
        return self.pool.lend(self.beginning)

    async def close(self) -> None:
        await self.pool.close()


async def _prepare(driver: Any) -> None:
    # JSON passes as text: the ledger's own reader and writer make it, the same on every database.
    await driver.set_type_codec("jsonb", schema="pg_catalog", encoder=str, decoder=json.loads, format="text")


async def _leave(_: Any) -> None:
    """Nothing to clean: a connection comes back without a transaction, and no setting of a session is ever made."""
