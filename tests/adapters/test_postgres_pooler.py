"""The ledger through PgBouncer in transaction mode: every transaction may have another server connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import sqlalchemy as sa
from adapters.postgres_scene import on_ledger
from support.pooler import SERVER_CONNECTIONS, Pooler, pooler_before
from support.postgres import PostgresDatabases, rows

import casenotes
from casenotes.adapters.postgres import open_ledger
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.ports.contract import OpenLedger
from casenotes.ports.contract.isolation import IsolationContract
from casenotes.ports.contract.keys import KeysContract
from casenotes.ports.contract.leases import LeasesContract
from casenotes.ports.contract.snapshot import SnapshotContract
from casenotes.ports.contract.stage import answered, at, chat_session, committed, end, started
from casenotes.ports.ledger import Ledger


@pytest.fixture(scope="module")
def pooler(postgres: PostgresDatabases) -> Iterator[Pooler]:
    with pooler_before(postgres.url) as pooler:
        yield pooler


@pytest.fixture
def direct(postgres: PostgresDatabases) -> Iterator[str]:
    """An empty ledger, as it is reached without the pooler."""
    with postgres.copy("head") as url:
        yield url


@pytest.fixture
def url(pooler: Pooler, direct: str) -> str:
    """The same, through the pooler."""
    return pooler.url(direct)


def test_many_at_once_share_few_server_connections_and_leave_no_statement_prepared(
    url: str, direct: str
) -> None:
    async def scene() -> None:
        ledger = open_ledger(url)
        backends, prepared = set[int](), set[int]()

        async def write(number: int) -> None:
            async with committed(ledger) as work:
                await work.sessions.ensure(chat_session("s"))
                run = await work.runs.add(started(f"r-{number}"))
            async with committed(ledger) as work:
                await work.journal.add_tool(run.tool_call(1, "logs.search", at(), result={"of": number}))
                await end(work, answered(run))
            async with ledger.view() as view:
                (tool,) = await view.journal.tools("s", f"r-{number}")
                assert tool.result == {"of": number}
                look = sa.text(
                    "select pg_backend_pid() as pid, (select count(*) from pg_prepared_statements) as prepared,"
                    " current_setting('transaction_read_only') as read_only"
                )
                seen = await view.sessions._transaction.one(look)
                assert seen is not None and seen["read_only"] == "on"
                backends.add(seen["pid"])
                prepared.add(seen["prepared"])

        try:
            await ledger.check()
            async with asyncio.timeout(60):
                for _ in range(3):
                    await asyncio.gather(*(write(_ * 100 + number) for number in range(60)))
            async with ledger.view() as view:
                session = await view.sessions.get("s")
            assert session is not None and session.message_pair_count == 180
            assert 1 < len(backends) <= SERVER_CONNECTIONS
            assert prepared == {0}
            name = await rows(direct, "select 1 from pg_stat_activity where application_name = 'casenotes'")
            assert len(name) > 0
        finally:
            await ledger.close()

    asyncio.run(scene())


@pytest.mark.parametrize("after_ms", [1, 5, 13, 34])
def test_cancelled_tasks_leave_no_server_connection_in_a_transaction(
    url: str, direct: str, after_ms: int
) -> None:
    async def scene() -> None:
        ledger = open_ledger(url)

        async def write(name: str) -> None:
            async with ledger.work() as work:
                await work.sessions.ensure(chat_session(name))
                await work.runs.add(started(name, name))
                await work.commit()

        try:
            tasks = [asyncio.create_task(write(f"n-{number}")) for number in range(20)]
            await asyncio.sleep(after_ms / 1000)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(write(f"m-{number}") for number in range(20)))
            halves = (
                "select 1 from chat_session left join diagnosis_run using (session_id) where run_id is null"
            )
            assert await rows(direct, halves) == []
        finally:
            await ledger.close()

    asyncio.run(scene())
    on_ledger(direct, _nothing)


async def _nothing(_: SqlLedger) -> None:
    """``on_ledger`` looks by itself whether anybody is idle in a transaction."""


def test_migrations_go_through_the_pooler(pooler: Pooler, postgres: PostgresDatabases) -> None:
    async def scenario(url: str) -> None:
        async with casenotes.open(url, migrate=True) as notes:
            async with notes.run("q", session="s-1") as run:
                run.answer("a")
            assert len(await notes.runs("s-1")) == 1

    with postgres.empty() as direct:
        asyncio.run(scenario(pooler.url(direct)))


class TestPooledLedger(IsolationContract, KeysContract, LeasesContract, SnapshotContract):
    """The parts of the contract in which transactions meet."""

    @pytest.fixture
    def open_ledger(self, url: str) -> OpenLedger:
        @asynccontextmanager
        async def open_database() -> AsyncIterator[Ledger]:
            ledger = open_ledger(url)
            try:
                yield ledger
            finally:
                await ledger.close()

        return open_database
