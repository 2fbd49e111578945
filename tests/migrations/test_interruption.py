"""Migrations that fail, are killed, or start at the same time: whole revisions or none, and then they go on."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from support.historical import OldDatabase, PostgresDatabase, SqliteDatabase
from support.pooler import pooler_before

from casenotes.adapters import migration
from casenotes.adapters.migration import Placed, Rows, backfill
from casenotes.adapters.migration.backfill import Batch
from casenotes.adapters.migration.placement import Phase

# Places a batch, says so in the second, and waits to be killed, inside that batch's transaction.
_HANGS_AT_SECOND_BATCH = """
import asyncio, sys, time
from pathlib import Path
from casenotes.adapters import migration
from casenotes.adapters.migration import backfill

place_next, calls = backfill.place_next, []

def hang(connection, phase, after):
    calls.append(after)
    batch = place_next(connection, phase, after)
    if len(calls) == 2:
        Path(sys.argv[2]).touch()
        time.sleep(60)
    return batch

backfill.place_next, backfill.BATCH = hang, 3
asyncio.run(migration.upgrade(sys.argv[1]))
"""

# Seconds, in one statement.
_TAKES_LONG = """
WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 30000000)
SELECT count(*) FROM counted
"""

_WAITS_FOR_THE_START = """
import asyncio, json, sys, time
from pathlib import Path
from casenotes.adapters import migration

print("ready", flush=True)
sys.stdin.readline()
report = asyncio.run(migration.upgrade(sys.argv[1]))
print(json.dumps([report.applied, report.to_revision, report.placed.sessions]))
"""


class Failed(Exception):
    """What the tests let go wrong."""


def upgrade(database: OldDatabase, revision: str = "head") -> migration.MigrationReport:
    return asyncio.run(migration.upgrade(database.url, revision))


def kill_at_second_batch(database: OldDatabase, tmp_path: Path) -> None:
    reached = tmp_path / "reached"
    argv = [sys.executable, "-c", _HANGS_AT_SECOND_BATCH, database.url, str(reached)]
    with subprocess.Popen(argv) as process:
        end = time.monotonic() + 60
        while not reached.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        process.kill()
    assert reached.exists()


def fail_at(number: int) -> Callable[[sa.Connection, Phase, int | None], Batch | None]:
    """``place_next``, which raises at this call, when its work is done and not committed."""
    place_next, calls = backfill.place_next, list[int | None]()

    def failing(connection: sa.Connection, phase: Phase, after: int | None) -> Batch | None:
        calls.append(after)
        batch = place_next(connection, phase, after)
        if len(calls) == number:
            raise Failed
        return batch

    return failing


def placed_rows(database: OldDatabase) -> list[list[dict[str, object]]]:
    """What was placed, without the ids that a batch that was undone has used up."""
    placed = [
        database.rows(f"SELECT * FROM {table} ORDER BY session_id, run_id, sequence")
        for table in ("agent_step", "tool_invocation")
    ]
    runs = database.rows("SELECT * FROM diagnosis_run ORDER BY id")
    chats = database.rows("SELECT * FROM chat_session ORDER BY session_id")
    return [*placed, [run | {"id": None} for run in runs], chats]


@pytest.mark.parametrize(("fails", "left"), [("0002", "0001"), ("0003", "0002")])
def test_a_failure_in_a_revision_leaves_the_one_before(
    historical: OldDatabase, monkeypatch: pytest.MonkeyPatch, fails: str, left: str
) -> None:
    run = migration.scripts.run

    def failing(connection: sa.Connection, revision: str) -> None:
        run(connection, revision)
        if revision == fails:
            raise Failed

    upgrade(historical, "0001")
    before = historical.columns()
    with monkeypatch.context() as patch:
        patch.setattr("casenotes.adapters.migration.scripts.run", failing)
        with pytest.raises(Failed):
            upgrade(historical)

    assert historical.row("SELECT version_num FROM alembic_version") == {"version_num": left}
    assert (historical.columns() == before) is (left == "0001")
    assert "orchestration_trace" not in historical.columns().get("diagnosis_run", ())
    assert upgrade(historical).placed.sessions == 11


def test_a_process_killed_between_batches_is_gone_on_with_from_the_last_whole_one(
    historical: OldDatabase, another: Callable[[], OldDatabase], tmp_path: Path
) -> None:
    undisturbed = another()
    undisturbed.make_historical()
    upgrade(undisturbed)

    kill_at_second_batch(historical, tmp_path)

    half_way = asyncio.run(migration.status(historical.url))
    assert half_way.is_current
    assert half_way.waiting == Placed(sessions=8, steps=1)
    assert half_way.leftovers.steps == Rows(1, ("vanished",))
    assert len(historical.rows("SELECT * FROM diagnosis_run")) == 3
    assert upgrade(historical).placed == Placed(sessions=8, steps=1)
    assert placed_rows(historical) == placed_rows(undisturbed)
    assert not asyncio.run(migration.status(historical.url)).waiting


def test_a_failure_in_a_batch_keeps_the_whole_ones_before(
    historical: OldDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(backfill, "BATCH", 3)
        patch.setattr(backfill, "place_next", fail_at(3))
        with pytest.raises(Failed):
            upgrade(historical)
    assert len(historical.rows("SELECT * FROM diagnosis_run")) == 6
    assert upgrade(historical).placed.sessions == 5


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "historical"])
def test_of_processes_that_start_at_once_one_migrates_and_the_others_find_it_done(
    new: OldDatabase, is_new: bool
) -> None:
    if not is_new:
        new.make_historical()
    argv = [sys.executable, "-W", "error", "-c", _WAITS_FOR_THE_START, new.url]
    processes = [
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    outputs = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        outputs.append(process.communicate(timeout=60)[0])
        assert process.returncode == 0

    reports = [json.loads(output) for output in outputs]
    applied = sorted(revision for report in reports for revision in report[0])
    assert applied == (["0001"] if is_new else []) + ["0002", "0003", "0004", "0005", "0006"]
    assert {report[1] for report in reports} == {"0006"}
    assert sum(report[2] for report in reports) == (0 if is_new else 11)


def test_writers_of_the_old_system_are_not_held_up_by_a_batch(
    historical_on_server: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_system, place_next, wrote = historical_on_server, backfill.place_next, Event()

    def write() -> None:
        old_system.insert_session("meanwhile")
        old_system.insert_step("checkout-slow", step_number=4)
        old_system.execute("UPDATE diagnosis_session SET answer = 'late' WHERE session_id = 'unfinished'")

    def meanwhile(connection: sa.Connection, phase: Phase, after: int | None) -> Batch | None:
        batch = place_next(connection, phase, after)
        if not wrote.is_set():
            with ThreadPoolExecutor(1) as another_thread:  # this one runs an event loop
                another_thread.submit(write).result(timeout=30)
            wrote.set()
        return batch

    monkeypatch.setattr(backfill, "place_next", meanwhile)
    assert upgrade(historical_on_server).placed == Placed(sessions=12, steps=7, tools=4)


def test_every_batch_may_meet_another_server_connection(
    historical_on_server: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "BATCH", 3)
    with pooler_before(historical_on_server.url) as pooler:
        through = pooler.url(historical_on_server.url)
        assert asyncio.run(migration.upgrade(through)).placed.sessions == 11
        assert asyncio.run(migration.status(through)).is_current


def test_several_databases_can_be_migrated_in_one_process_at_once(tmp_path: Path) -> None:
    async def all_at_once() -> list[migration.MigrationReport]:
        urls = [SqliteDatabase(tmp_path / f"{number % 3}.db").url for number in range(9)]
        return await asyncio.gather(*(migration.upgrade(each) for each in urls))

    reports = asyncio.run(all_at_once())
    assert sorted(len(report.applied) for report in reports) == [0] * 6 + [6] * 3


def test_a_migration_of_a_file_that_is_cancelled_stops_in_the_statement_it_is_at(
    historical_file: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = Event(), list[str]()

    def slow(connection: sa.Connection, phase: Phase, after: int | None) -> None:
        connection.exec_driver_sql("UPDATE diagnosis_session SET answer = 'lost'")
        begun.set()
        try:
            connection.exec_driver_sql(_TAKES_LONG)
        except sa.exc.OperationalError as error:
            ended.append(str(error.orig))

    async def cancel() -> None:
        migrating = asyncio.create_task(migration.upgrade(historical_file.url))
        assert await asyncio.to_thread(begun.wait, 60)
        migrating.cancel()
        await migrating

    with monkeypatch.context() as patch:
        patch.setattr(backfill, "place_next", slow)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(cancel())

    assert ended == ["interrupted"]
    assert upgrade(historical_file).placed.sessions == 11


def test_an_engine_that_begins_transactions_by_itself_is_migrated_and_left_open(
    historical_file: SqliteDatabase,
) -> None:
    engine = create_async_engine(historical_file.url)

    @sa.event.listens_for(engine.sync_engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    async def migrate() -> int | None:
        await migration.upgrade(engine)
        assert (await migration.status(engine)).is_current
        async with engine.connect() as connection:
            number: int | None = await connection.scalar(sa.text("SELECT count(*) FROM diagnosis_run"))
        await engine.dispose()
        return number

    assert asyncio.run(migrate()) == 11


def test_a_database_in_memory_is_migrated_through_its_engine() -> None:
    engine = create_async_engine("sqlite+aiosqlite://")

    async def migrate() -> migration.MigrationReport:
        report = await migration.upgrade(engine)
        await engine.dispose()
        return report

    assert asyncio.run(migrate()).to_revision == migration.EXPECTED_REVISION
