"""Migrations that fail, are killed, or start at the same time: whole revisions or none, and then they go on."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from support.historical import columns, dump, insert_session, make_historical, row, rows, url

from casenotes.adapters import migration
from casenotes.adapters.migration import backfill
from casenotes.adapters.migration.backfill import Batch, Phase

# Places a batch, says so, and waits to be killed: inside the transaction of the second batch.
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


def upgrade(path: Path, revision: str = "head") -> migration.MigrationReport:
    return asyncio.run(migration.upgrade(url(path), revision))


def kill_at_second_batch(path: Path) -> None:
    reached = path.with_suffix(".reached")
    argv = [sys.executable, "-c", _HANGS_AT_SECOND_BATCH, url(path), str(reached)]
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


def test_a_failure_in_the_middle_of_a_revision_leaves_the_revision_before(
    historical: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(historical, "0001")
    before = dump(historical)
    with monkeypatch.context() as patch:
        patch.setattr(backfill, "place_next", fail_at(1))
        with pytest.raises(Failed):
            upgrade(historical)

    assert dump(historical) == before
    assert upgrade(historical).applied == ("0002", "0003", "0004")


def test_a_failure_in_a_later_revision_keeps_the_earlier_ones(
    historical: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = migration.scripts.run

    def failing(connection: sa.Connection, revision: str) -> migration.Placed:
        placed = run(connection, revision)
        if revision == "0003":
            raise Failed
        return placed

    with monkeypatch.context() as patch:
        patch.setattr("casenotes.adapters.migration.scripts.run", failing)
        with pytest.raises(Failed):
            upgrade(historical)

    assert row(historical, "SELECT version_num FROM alembic_version") == {"version_num": "0002"}
    assert "orchestration_trace" not in columns(historical)["diagnosis_run"]
    assert upgrade(historical).applied == ("0003", "0004")


def test_a_process_killed_in_the_middle_of_a_revision_leaves_the_revision_before(
    historical: Path, tmp_path: Path
) -> None:
    undisturbed = tmp_path / "undisturbed.db"
    make_historical(undisturbed)
    upgrade(undisturbed)
    upgrade(historical, "0001")
    before = dump(historical)

    kill_at_second_batch(historical)

    assert dump(historical) == before
    upgrade(historical)
    assert dump(historical) == dump(undisturbed)


def test_a_process_killed_between_batches_is_gone_on_with(historical: Path) -> None:
    upgrade(historical)
    for number in range(8):
        insert_session(historical, f"late-{number}")

    kill_at_second_batch(historical)

    placed = "SELECT session_id FROM diagnosis_run WHERE session_id LIKE 'late-%'"
    assert len(rows(historical, placed)) == 3
    assert upgrade(historical).placed.sessions == 5
    assert len(rows(historical, placed)) == 8


def test_a_failure_between_batches_keeps_whole_batches(
    historical: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(historical)
    for number in range(8):
        insert_session(historical, f"late-{number}")
    with monkeypatch.context() as patch:
        patch.setattr(backfill, "BATCH", 3)
        patch.setattr(backfill, "place_next", fail_at(3))
        with pytest.raises(Failed):
            upgrade(historical)
    assert upgrade(historical).placed.sessions == 2


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "historical"])
def test_of_processes_that_start_at_once_one_migrates_and_the_others_find_it_done(
    new: Path, is_new: bool
) -> None:
    if not is_new:
        make_historical(new)
    argv = [sys.executable, "-W", "error", "-c", _WAITS_FOR_THE_START, url(new)]
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
    assert applied == (["0001"] if is_new else []) + ["0002", "0003", "0004"]
    assert {report[1] for report in reports} == {"0004"}
    assert sum(report[2] for report in reports) == (0 if is_new else 11)


def test_several_databases_can_be_migrated_in_one_process_at_once(tmp_path: Path) -> None:
    async def all_at_once() -> list[migration.MigrationReport]:
        urls = [url(tmp_path / f"{number % 3}.db") for number in range(9)]
        return await asyncio.gather(*(migration.upgrade(each) for each in urls))

    reports = asyncio.run(all_at_once())
    assert sorted(len(report.applied) for report in reports) == [0] * 6 + [4] * 3


def test_an_engine_that_begins_transactions_by_itself_is_migrated_and_left_open(historical: Path) -> None:
    engine = create_async_engine(url(historical))

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
