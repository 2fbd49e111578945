"""Connections to PostgreSQL that are cut, that go dead, and a server that restarts under a running service."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from adapters.postgres_scene import (
    on_ledger,
    out_at_the_moment,
    require_full_pool,
    require_nobody_idle_in_transaction,
)
from attrs import evolve
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from support.fault_proxy import before_postgres
from support.postgres import PostgresDatabases, rows, until
from support.scripted import Gate, Scripted
from support.servers import Postgres, find_postgres
from support.service import Backend, Running, memory_backend

from casenotes.adapters.postgres import open_ledger
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.core.errors import LedgerUnavailable
from casenotes.ports.contract.stage import add_run, chat_session, started

OURS = (
    "select pid from pg_stat_activity where datname = current_database() and application_name = 'casenotes'"
)
CUT = OURS.replace("pid", "pg_terminate_backend(pid)", 1)


@pytest.fixture
def url(postgres: PostgresDatabases) -> Iterator[str]:
    """An empty ledger."""
    with postgres.copy("head") as url:
        yield url


async def recovered(ledger: SqlLedger) -> int:
    """Work until it succeeds; how often it was honestly refused before."""
    for refused in range(50):
        try:
            async with ledger.work() as work:
                await work.sessions.ensure(chat_session("afterwards"))
                await work.commit()
        except LedgerUnavailable:
            continue
        return refused
    raise AssertionError("it does not recover")


def test_connections_that_were_cut_while_idle_are_not_met_by_the_next_request(url: str) -> None:
    async def scene(ledger: SqlLedger) -> None:
        await require_full_pool(ledger)
        assert len(await rows(url, CUT)) > 1
        await until(url, OURS, 0)
        assert await recovered(ledger) <= 1, "and none where the news of the cut has arrived"

    on_ledger(url, scene)


def test_connection_that_is_cut_in_the_middle_of_the_work_undoes_it_and_says_so(url: str) -> None:
    async def scene(ledger: SqlLedger) -> None:
        for _ in range(3):
            with pytest.raises(LedgerUnavailable):
                async with ledger.work() as work:
                    await work.sessions.ensure(chat_session("half"))
                    await rows(url, CUT)
                    await work.runs.add(started("half", "half"))
                    await work.commit()
            await recovered(ledger)
        async with ledger.view() as view:
            assert await view.sessions.get("half") is None

    on_ledger(url, scene)


def test_commit_on_a_connection_that_was_cut_is_no_success(url: str) -> None:
    async def scene(ledger: SqlLedger) -> None:
        with pytest.raises(LedgerUnavailable):
            async with ledger.work() as work:
                await work.sessions.ensure(chat_session("half"))
                await rows(url, CUT)
                await work.commit()
        await recovered(ledger)
        async with ledger.view() as view:
            assert await view.sessions.get("half") is None

    on_ledger(url, scene)


def test_view_that_is_cut_says_so(url: str) -> None:
    async def scene(ledger: SqlLedger) -> None:
        await add_run(ledger, started())
        with pytest.raises(LedgerUnavailable):
            async with ledger.view() as view:
                await view.runs.latest("s")
                await rows(url, CUT)
                await view.runs.latest("s")
        await recovered(ledger)

    on_ledger(url, scene)


def test_many_at_work_when_all_connections_are_cut_all_succeed_or_are_refused(url: str) -> None:
    async def scene(ledger: SqlLedger) -> None:
        written = set[str]()

        async def write(name: str) -> None:
            async with ledger.work() as work:
                await work.sessions.ensure(chat_session(name))
                await work.runs.add(started(name, name))
                await work.commit()
                written.add(name)

        async def cut() -> None:
            for _ in range(5):
                await rows(url, CUT)

        tasks = [write(f"n-{number}") for number in range(100)]
        ends = await asyncio.gather(cut(), *tasks, return_exceptions=True)
        assert {type(end) for end in ends} <= {type(None), LedgerUnavailable}
        stored = {row["run_id"] for row in await rows(url, "select run_id from diagnosis_run")}
        assert written <= stored
        await recovered(ledger)

    on_ledger(url, scene)


def test_dead_wire_is_given_up_after_the_time_that_one_statement_may_take(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casenotes.adapters.postgres.COMMAND_SECONDS", 0.3)
    monkeypatch.setattr("casenotes.adapters.postgres.CONNECT_SECONDS", 0.3)

    async def scene() -> None:
        async with asyncio.timeout(25), before_postgres(url) as wire:
            ledger = open_ledger(wire.url)
            try:
                async with ledger.work() as work:
                    await work.sessions.ensure(chat_session("s"))
                    wire.halt()
                    with pytest.raises(LedgerUnavailable, match="cannot be reached"):
                        await work.sessions.get("s")
                with pytest.raises(LedgerUnavailable, match="cannot be reached"):
                    await ledger.check()
                assert out_at_the_moment(ledger) == 0
                wire.heal()
                await recovered(ledger)
                wire.cut()
                await recovered(ledger)
                await require_full_pool(ledger)
                await require_nobody_idle_in_transaction(url)
            finally:
                await ledger.close()

    asyncio.run(scene())


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[tuple[Postgres, str]]:
    """A server of the test's own, and a ledger in it."""
    binaries = find_postgres()
    assert binaries is not None
    server = Postgres(binaries)
    try:
        maintenance = f"postgresql+asyncpg://postgres@/postgres?host={server.home}&port=5432"
        with PostgresDatabases(maintenance, "own").copy("head") as url:
            # Else what was committed last is lost when the server starts anew.
            name = make_url(url).database
            asyncio.run(rows(maintenance, f"alter database {name} set synchronous_commit = on"))
            yield server, url
    finally:
        server.stop()


async def restarted(url: str, pid: int) -> bool:
    """Whether the server has forgotten a backend that was killed."""
    try:
        return not await rows(url, "select 1 from pg_stat_activity where pid = :pid", pid=pid)
    except (OSError, DBAPIError):
        return False


async def recovering(here: Running) -> bool:
    return (await here.client.get("/readyz")).status != 200


def test_service_outlives_a_restart_of_its_database(own_server: tuple[Postgres, str]) -> None:
    """A backend that is killed makes the server end all the others and start anew, data kept."""
    server, url = own_server
    gate = Gate()

    async def scenario(here: Running) -> None:
        under_way = asyncio.create_task(here.client.ask("one", "s-1"))
        await gate.reached.wait()
        backend = (await rows(url, OURS))[0]
        os.kill(backend["pid"], signal.SIGKILL)
        async with asyncio.timeout(30):
            statuses = {(await here.client.get("/api/sessions")).status}
            while not await restarted(url, backend["pid"]) or await recovering(here):
                statuses.add((await here.client.get("/api/sessions")).status)
        assert statuses <= {200, 503}
        gate.opened.set()
        answer = await under_way
        assert answer["success"], answer
        assert (await here.client.ask("two", "s-1"))["success"]
        assert (await here.client.get("/readyz")).status == 200
        assert server.process.poll() is None
        assert len((await here.client.runs("s-1")).data) == 2

    backend = Backend("postgres", evolve(memory_backend().settings, database_url=url))
    backend.run(scenario, Scripted(gate))
