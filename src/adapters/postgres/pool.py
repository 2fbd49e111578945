"""Connections to PostgreSQL: a pool of them, each lent to one transaction at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from time import monotonic
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]
from attrs import define, field, frozen

from casenotes.adapters.sql.connections import Row
from casenotes.adapters.sql.turns import Turns
from casenotes.core.errors import LedgerUnavailable

_LAST_WORDS_SECONDS: Final = 5
"""How long the end of an unfinished transaction, and a goodbye, may take before a connection is dropped."""

_PLAN_ONCE: Final = "SET plan_cache_mode = force_generic_plan"
"""Each statement is planned once, for any values: all find their rows by an index, whatever they ask for, and to plan
so wide a one as that of a trace takes longer than to carry it out."""

_LOCK_SHARE: Final = 0.8
_STATEMENT_SHARE: Final = 0.9
"""Of the time that a statement may take, how much it may wait for what others hold, for one thing and in all: the
server then refuses it, and is not left with one that nobody waits for any more, and the rows that are held for it."""

_IDLE_SECONDS: Final = 300
"""How long a connection may be left unused before it is closed, when another is given back."""


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
        return [dict(record) for record in await self.fetch_plain(sql, arguments)]

    async def fetch_plain(self, sql: str, arguments: Sequence[Any]) -> Sequence[Any]:
        try:
            records: Sequence[Any] = await self._driver.fetch(sql, *arguments)
        except BaseException as fault:
            self._judge(fault)
            raise
        return records

    async def fetch_each(self, sql: str, arguments: Sequence[Sequence[Any]]) -> list[Row]:
        """The rows of a statement done for each of these arguments, in their order, in one way to the server."""
        try:
            return [dict(record) for record in await self._driver.fetchmany(sql, arguments)]
        except BaseException as fault:
            self._judge(fault)
            raise

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
    """All connections of one ledger, each opened when it is needed.

    At most ``size`` are open at once; one that is not free within ``turn_seconds`` is not waited for any longer.
    Behind a pooler even a single statement needs a transaction, for its parts may else go to different servers.
    """

    size: int
    turn_seconds: float
    arguments: Mapping[str, Any]
    is_behind_pooler: bool = False
    _free: list[tuple[Any, float]] = field(factory=list, init=False)
    """Drivers that nobody has, with the time since when; the one that was given back last is lent first."""
    _turns: Turns = field(init=False)
    _is_closed: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        busy = "the ledger is busy: no connection became free in time"
        self._turns = Turns(self.size, self.turn_seconds, busy)

    @property
    def lent(self) -> int:
        """How many connections are out at the moment."""
        return self._turns.out

    def lend(self, beginning: str) -> Lending:
        """A connection whose transactions begin in this way; what is not committed in the block is undone."""
        return Lending(self, beginning)

    async def close(self) -> None:
        """Close all connections, those that are out as soon as they are given back."""
        self._is_closed = True
        free, self._free = self._free, []
        for driver, _ in free:
            with suppress(Exception):
                await driver.close(timeout=_LAST_WORDS_SECONDS)

    async def take(self) -> Any:
        """A driver, for whoever gives it back."""
        await self._turns.take()
        try:
            while self._free:
                driver, _ = self._free.pop()
                if (
                    not driver.is_closed()
                ):  # told by the loop, which has seen it close: no need to ask the server
                    return driver
            return await self._opened()
        except BaseException:
            self._turns.give_back()
            raise

    def give_back(self, driver: Any, *, is_lost: bool) -> None:
        """Take a driver back; one of which nobody knows what it is in the middle of is dropped."""
        now = monotonic()
        if is_lost or self._is_closed:
            driver.terminate()
        elif not driver.is_closed():
            self._free.append((driver, now))
        if self._free and now - self._free[0][1] > _IDLE_SECONDS:
            self._free.pop(0)[0].terminate()
        self._turns.give_back()

    async def _opened(self) -> Any:
        driver = await asyncpg.connect(**self.arguments)
        try:
            # JSON passes as text: the ledger's own reader and writer make it, the same on every database.
            await driver.set_type_codec(
                "jsonb", schema="pg_catalog", encoder=str, decoder=json.loads, format="text"
            )
            if not self.is_behind_pooler:
                all_ms = 1_000 * self.arguments["command_timeout"]
                limits = {
                    "lock_timeout": _LOCK_SHARE * all_ms,
                    "statement_timeout": _STATEMENT_SHARE * all_ms,
                }
                settings = (f"SET {name} = {round(ms)}" for name, ms in limits.items())
                await driver.execute("; ".join((_PLAN_ONCE, *settings)))
        except BaseException:
            driver.terminate()
            raise
        return driver


class Lending:
    """A connection lent for a block."""

    __slots__ = ("_beginning", "_connection", "_driver", "_pool")

    def __init__(self, pool: PostgresPool, beginning: str) -> None:
        self._pool, self._beginning = pool, beginning

    async def __aenter__(self) -> PostgresConnection:
        self._driver = await self._pool.take()
        self._connection = PostgresConnection(self._driver, self._beginning, not self._pool.is_behind_pooler)
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        is_lost = True
        try:
            if not self._connection.is_lost and self._driver.is_in_transaction():
                with suppress(Exception):  # dropped then, and undone by the server
                    async with asyncio.timeout(_LAST_WORDS_SECONDS):
                        await self._driver.execute("ROLLBACK")
            is_lost = self._connection.is_lost or self._driver.is_in_transaction()
        finally:
            self._pool.give_back(self._driver, is_lost=is_lost)


@frozen
class PostgresConnections:
    """``casenotes.adapters.sql.connections.Connections``: those of a pool that begin their transactions so."""

    pool: PostgresPool
    beginning: str

    def connection(self) -> AbstractAsyncContextManager[PostgresConnection]:
        return self.pool.lend(self.beginning)

    async def close(self) -> None:
        await self.pool.close()
