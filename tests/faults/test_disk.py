"""The disk under an SQLite ledger is full or may not be written: clear words, all whole, and on it goes afterwards."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from faults.scene import Replica, play, replica, settled
from sqlalchemy.engine import make_url
from support.http import Reply, client_of
from support.invariants import assert_sound
from support.process import TESTS, WAITING, service_process
from support.scripted import Gate
from support.small_disk import MODULE, filled, require_small_disks

from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.adapters.sqlite.threads import SqliteConnections, fetch
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.words import RunStatus

DISK_BYTES = 2 * 1024 * 1024


async def until(reply: Callable[[], Awaitable[Reply]], done: Callable[[Any], bool]) -> None:
    """Ask until the data of the answer are as wanted."""
    async with asyncio.timeout(60):
        while True:
            given = await reply()
            if given.status == 200 and done(given.data):
                return
            await asyncio.sleep(0.05)


def test_service_on_a_full_disk_refuses_and_reads_and_goes_on_when_there_is_space(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    require_small_disks(disk)
    stores = {
        "database_url": f"sqlite+aiosqlite:///{disk / 'casenotes.db'}",
        "context_url": f"sqlite:///{disk / 'context.db'}",
        "run_lease": "1",
    }

    async def scenario() -> None:
        inside = Path(f"/proc/{service.process.pid}/root{disk}")
        async with client_of(service.url) as client:
            under_way = asyncio.create_task(client.ask("under way", "s"))
            await until(lambda: client.trace("s"), lambda trace: len(trace["toolInvocations"]) == 1)
            with filled(inside):
                for _ in range(3):
                    reply = await client.post("/api/chat", {"sessionId": "t", "question": "q" * 9_000})
                    assert reply.status == 503, reply.body
                    assert "disk" in reply.message and int(reply.headers["Retry-After"]) > 0
                service.let_runs_end()
                assert not (await under_way)["success"]
                assert len((await client.runs("s")).data) == 1, "reading needs no space"
                assert (await client.runs("t")).status == 404, "nothing is half written"
            assert (await client.ask("again", "t"))["success"]
            await until(lambda: client.runs("s"), lambda runs: runs[0]["status"] == "FAILED")
            assert (await client.get("/readyz")).status == 200
        for name in (
            "casenotes.db",
            "casenotes.db-wal",
        ):  # as they are: SQLite's path would lead out of there
            copyfile(inside / name, tmp_path / name)
        await assert_sound(f"sqlite+aiosqlite:///{tmp_path / 'casenotes.db'}")

    with service_process(tmp_path, (MODULE, str(disk), str(DISK_BYTES), *WAITING), **stores) as service:
        play(scenario)


@asynccontextmanager
async def set_for_writers(here: Replica, pragma: str, value: str, afterwards: str) -> AsyncIterator[None]:
    """Set something on the connection that writes; afterwards it is set to another value."""
    ledger = here.service.ledger
    assert isinstance(ledger, SqlLedger)
    writing = ledger.writing
    assert isinstance(writing, SqliteConnections)

    async def set_to(new: str) -> None:
        async with writing.thread() as thread:
            await thread.do(lambda connection: fetch(connection, f"PRAGMA {pragma} = {new}", ()))

    await set_to(value)
    yield
    await set_to(afterwards)


def test_run_under_way_when_the_file_cannot_grow_fails_and_is_ended(sqlite_url: str) -> None:
    gate = Gate()
    long = "x" * 20_000

    async def scenario() -> None:
        async with replica(sqlite_url, script=gate) as here:
            asking = asyncio.create_task(here.ask("s", long))
            await gate.reached.wait()
            # SQLite makes a limit below it the present size, and then takes the disk to be full.
            async with set_for_writers(here, "max_page_count", "1", "1000000"):
                gate.opened.set()
                assert (await asking).status is RunStatus.FAILED
                with pytest.raises(LedgerUnavailable, match="disk is full"):
                    await here.ask("t", long)
                assert [run["status"] for run in await here.stored("t")] == []
            assert (await here.ask("t", long)).status is RunStatus.SUCCESS
        await settled(sqlite_url)

    play(scenario)


def test_ledger_that_turns_read_only_is_refused_to_writers_and_read_by_readers(sqlite_url: str) -> None:
    async def scenario() -> None:
        async with replica(sqlite_url) as here:
            assert (await here.ask("s")).status is RunStatus.SUCCESS
            async with set_for_writers(here, "query_only", "ON", "OFF"):
                with pytest.raises(LedgerUnavailable, match="read-only"):
                    await here.ask("s")
                with pytest.raises(LedgerUnavailable, match="read-only"):
                    await here.service.feedback.give("s", "useful")
                assert (await here.service.reading.trace("s")).run is not None
            assert (await here.ask("s")).status is RunStatus.SUCCESS
        await settled(sqlite_url)

    play(scenario)


@pytest.mark.parametrize("made", [True, False], ids=["with a ledger", "empty"])
def test_service_in_a_read_only_folder_says_so_and_does_not_start(
    made: bool, sqlite_url: str, tmp_path: Path
) -> None:
    folder = Path(str(make_url(sqlite_url).database)).parent
    require_small_disks(folder)
    database = folder / "casenotes.db"
    if not made:
        database.unlink()
    before = sorted((file.name, file.stat().st_size) for file in folder.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", MODULE, str(folder), "0", "casenotes", "serve", "--port", "0"],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH")))),
            "CASENOTES_DATABASE_URL": sqlite_url,
            "CASENOTES_CONTEXT_URL": "memory://",
        },
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.count("\n") == 1, done.stderr
    assert "read-only" in done.stderr or "cannot be opened" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert sorted((file.name, file.stat().st_size) for file in folder.iterdir()) == before
