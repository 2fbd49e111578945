"""What run isolation changed, on databases of the old system: every drift explained to the row."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import CommandLine
from support.historical import OldDatabase, PostgresDatabase, SqliteDatabase
from support.postgres import PostgresDatabases

import casenotes
from casenotes.adapters.sql import isolation
from casenotes.core.baseline.isolation import (
    Counted,
    IsolationReport,
    SessionFigures,
    drifts_of,
    isolation_report,
)
from casenotes.entrypoints.baseline.isolating import isolation_of
from casenotes.entrypoints.bootstrap import open_ledger_at


def figures(rows: dict[str | None, int], reported: dict[str, int] | None = None) -> SessionFigures:
    """A session with so many steps of each run, which say of themselves that they have so many."""
    said = {run: count for run, count in rows.items() if run is not None} if reported is None else reported
    return SessionFigures(
        "s-1",
        Counted(sum(rows.values()), 0),
        {run: Counted(count, 0) for run, count in said.items()},
        {run: Counted(count, 0) for run, count in rows.items()},
    )


@given(st.dictionaries(st.sampled_from(["a", "b", "c", None]), st.integers(0, 9), min_size=1))
def test_the_rows_of_other_runs_explain_every_drift(rows: dict[str | None, int]) -> None:
    session = figures(rows)
    drifts = list(drifts_of(session))
    assert all(drift.is_explained for drift in drifts)
    runs = [run for run in rows if run is not None]
    assert len(drifts) == sum(sum(rows.values()) != rows[run] for run in runs) or not runs


@pytest.mark.parametrize(
    ("rows", "reported", "unexplained"),
    [
        ({"a": 3}, {"a": 2}, 1),  # a count that is too low
        ({"a": 3, "b": 2}, {"a": 5, "b": 2}, 2),  # one that is the whole session's
        ({"a": 3, "x": 1}, {"a": 3}, 1),  # a row of a run that the session does not have
    ],
)
def test_what_the_rows_of_others_do_not_account_for_is_told(
    rows: dict[str | None, int], reported: dict[str, int], unexplained: int
) -> None:
    report = isolation_report([figures(rows, reported)])
    assert [drift.unexplained for drift in report.unexplained] == [unexplained]


@pytest.fixture(params=["sqlite", "postgres"])
def migrated(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OldDatabase]:
    """The kept database of the old system, on the schema of this version."""
    if request.param == "sqlite":
        database: OldDatabase = SqliteDatabase(tmp_path / "old.db")
        make(database)
        yield database
        return
    postgres: PostgresDatabases = request.getfixturevalue("postgres")
    with postgres.empty() as url:
        database = PostgresDatabase(url)
        make(database)
        yield database


def make(database: OldDatabase) -> None:
    database.make_historical()

    async def migrate() -> None:
        async with casenotes.open(database.url, migrate=True):
            pass

    asyncio.run(migrate())


def go_on(database: OldDatabase) -> str:
    """A new run in a session of the old system: two steps and a tool call."""

    async def answered() -> str:
        async with casenotes.open(database.url) as notes:
            async with notes.run("And now?", session="checkout-slow") as run:
                async with run.step("planner"):
                    await run.tool("logs.search", {"q": "x"}, result="1 hit")
                async with run.step("composer"):
                    pass
                run.answer("It is the pool [T1].")
            return run.run_id

    return asyncio.run(answered())


def report_of(database: OldDatabase) -> IsolationReport:
    async def read() -> IsolationReport:
        ledger = await open_ledger_at(database.url)
        try:
            return await isolation_of(ledger)
        finally:
            await ledger.close()

    return asyncio.run(read())


Told: TypeAlias = tuple[str, bool, str, int, int, list[int], int]
"""Session, whether it has a run, steps or tools, of the session, of the run, of the other runs, of no run."""


def told(report: IsolationReport) -> list[Told]:
    return [
        (
            drift.session_id,
            drift.run_id is not None,
            drift.kind,
            drift.of_session,
            drift.of_run,
            list(drift.of_other_runs.values()),
            drift.of_no_run,
        )
        for drift in sorted(report.drifts, key=lambda one: (one.session_id, one.of_run, one.kind))
    ]


GONE: list[Told] = [
    ("Vanished", False, "tools", 1, 0, [], 1),
    ("vanished", False, "steps", 1, 0, [], 1),
    ("vanished", False, "tools", 1, 0, [], 1),
]


def test_right_after_the_migration_only_rows_without_a_session_drift(migrated: OldDatabase) -> None:
    report = report_of(migrated)
    assert told(report) == GONE
    assert report.unexplained == []
    assert report.all == Counted(7, 6)
    assert report.misrecorded == (("checkout-slow", Counted(99, 99), Counted(5, 4)),)


def test_a_new_run_in_an_old_session_drifts_by_the_rows_of_the_other(migrated: OldDatabase) -> None:
    run_id = go_on(migrated)
    report = report_of(migrated)
    assert told(report) == [
        GONE[0],
        ("checkout-slow", True, "tools", 5, 1, [4], 0),
        ("checkout-slow", True, "steps", 7, 2, [5], 0),
        ("checkout-slow", True, "tools", 5, 4, [1], 0),
        ("checkout-slow", True, "steps", 7, 5, [2], 0),
        *GONE[1:],
    ]
    assert report.unexplained == []
    assert run_id in {other for drift in report.drifts for other in drift.of_other_runs}
    assert report.misrecorded == (("checkout-slow", Counted(99, 99), Counted(5, 4)),)


def test_a_count_that_lies_and_a_row_that_strays_are_not_explained(migrated: OldDatabase) -> None:
    run_id = go_on(migrated)
    migrated.script(f"update diagnosis_run set tool_call_count = 5 where run_id = '{run_id}'")
    migrated.script("update agent_step set run_id = 'run-of-nobody' where session_id = 'unfinished'")
    left = report_of(migrated).unexplained
    assert {(drift.session_id, drift.kind, drift.unexplained, drift.astray) for drift in left} == {
        ("checkout-slow", "tools", 4, 0),
        ("unfinished", "steps", 2, 1),
    }


def test_every_session_is_counted_once_however_many_there_are(
    migrated: OldDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on(migrated)
    whole = report_of(migrated)
    migrated.script(
        "insert into agent_step (session_id, created_at) select 'lost-' || id, created_at from agent_step"
    )
    report = report_of(migrated)
    assert report.sessions == whole.sessions + whole.all.steps
    assert report.all == Counted(whole.all.steps * 2, whole.all.tools)
    monkeypatch.setattr(isolation, "_NAMES", isolation._NAMES.limit(2))
    assert report_of(migrated) == report


def test_the_command_says_whether_each_is_explained(cli: CommandLine) -> None:
    database = SqliteDatabase(cli.database)
    make(database)
    run_id = go_on(database)
    done = cli("baseline", "isolation")
    assert done.status == 0
    assert "steps: session 7, run 2; difference 5 = 5 of 1 other run" in done.out
    assert "7 drifts, each explained to the row" in " ".join(done.out.split())
    assert "noted 99 steps and 99 tool calls" in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())
    assert cli("baseline", "isolation", "--json").json["explained"] is True
    database.script(f"update diagnosis_run set step_count = 3 where run_id = '{run_id}'")
    done = cli("baseline", "isolation")
    assert done.status == 1
    said = " ".join(done.out.split())
    assert "difference 4 = 5 of 1 other run, NOT EXPLAINED: 1 row (the run has 2)" in said
    assert cli("baseline", "isolation", "--json").json["explained"] is False


def test_without_runs_there_is_no_drift(cli: CommandLine) -> None:
    cli.record("q")
    done = cli("baseline", "isolation")
    assert (done.status, done.out) == (0, "1 session, 1 run; 1 step, 1 tool call: no drift\n")


def test_a_record_in_memory_is_refused(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASENOTES_DATABASE_URL", "memory://")
    assert "memory://" in cli("baseline", "isolation").refused(2)
