"""Scenes on a ledger in PostgreSQL, and what the server says of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sqlalchemy.engine import make_url
from support.postgres import until

from casenotes.adapters.postgres import CONNECTIONS, open_ledger
from casenotes.adapters.postgres.pool import PostgresConnections, PostgresPool
from casenotes.adapters.sql.ledger import SqlLedger


def on_ledger(url: str, scene: Callable[[SqlLedger], Awaitable[None]]) -> None:
    """Play a scene on the ledger in this database.

    Whatever it does, no connection may be out at its end, none idle in a transaction, and all may be had anew.
    """

    async def played() -> None:
        ledger = open_ledger(url)
        asked = make_url(url).set(drivername="postgresql+asyncpg").render_as_string(hide_password=False)
        try:
            async with asyncio.timeout(60):
                await scene(ledger)
                assert out_at_the_moment(ledger) == 0
                await require_nobody_idle_in_transaction(asked)
                await require_full_pool(ledger)
        finally:
            await ledger.close()

    asyncio.run(played())


def out_at_the_moment(ledger: SqlLedger) -> int:
    return pool_of(ledger).lent


def pool_of(ledger: SqlLedger) -> PostgresPool:
    assert isinstance(ledger.writing, PostgresConnections)
    return ledger.writing.pool


async def require_nobody_idle_in_transaction(url: str) -> None:
    """A connection that was given up is idle no more as soon as the server has seen it: wait for that."""
    query = "select 1 from pg_stat_activity where datname = current_database() and state like 'idle in%'"
    await until(url, query, 0)


async def require_full_pool(ledger: SqlLedger) -> None:
    """As many units of work as there may be connections are open at the same time."""
    everybody = asyncio.Barrier(CONNECTIONS)

    async def hold() -> None:
        async with ledger.work() as work:
            await work.sessions.get("nobody")
            await everybody.wait()

    await asyncio.gather(*(hold() for _ in range(everybody.parties)))
