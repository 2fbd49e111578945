"""A record of two sessions, which each test may change by plain SQL, past all that is ours."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen
from support.cli import CommandLine
from support.historical import OldDatabase, PostgresDatabase, SqliteDatabase
from support.postgres import PostgresDatabases

import casenotes

TABLES = (
    "chat_session",
    "diagnosis_run",
    "agent_step",
    "tool_invocation",
    "case_library",
    "idempotency_key",
    "session_tombstone",
    "ledger_epoch",
)


async def record(url: str) -> Mapping[str, str]:
    """Three runs of session ``s``, the second rated useful, and two of ``t``: their ids by name."""
    ids = {}
    async with casenotes.open(url) as notes:
        for session, name in (("s", "r1"), ("t", "q1"), ("s", "r2"), ("s", "r3"), ("t", "q2")):
            async with notes.run(f"Why {name}?", session=session) as run:
                for number in (1, 2):
                    async with run.step("planner", model="m-1", input=f"{name} {number}") as step:
                        step.output, step.input_tokens, step.output_tokens = "look", 12, 3
                        await run.tool(
                            "logs.search", {"q": name, "n": number}, result={"lines": number}, duration_ms=5
                        )
                run.answer(f"Because of {name} [T1] [T2]")
            ids[name] = run.run_id
        await notes.feedback("s", "useful", run_id=ids["r2"])
        await notes.feedback("t", "useful", run_id=ids["q1"])
    return ids


@frozen
class Recorded:
    """A record, its runs by name, and a command line that looks at it."""

    database: OldDatabase
    ids: Mapping[str, str]
    cli: CommandLine

    def tamper(self, statements: str) -> None:
        """Change the database by SQL in which ``{r1}`` stands for a run's id."""
        for name, run_id in self.ids.items():
            statements = statements.replace(f"{{{name}}}", run_id)
        self.database.script(statements)


@frozen
class Original:
    """A record as it was written."""

    ids: Mapping[str, str]
    database: OldDatabase


@pytest.fixture(scope="module")
def original_file(tmp_path_factory: pytest.TempPathFactory) -> Original:
    database = SqliteDatabase(tmp_path_factory.mktemp("original") / "original.db")
    return Original(asyncio.run(record(database.url)), database)


@pytest.fixture(scope="module")
def original_on_server(postgres: PostgresDatabases) -> Iterator[Original]:
    with postgres.copy("head") as url:
        database = PostgresDatabase(url)
        ids = asyncio.run(record(url))
        database.script(";".join(f"CREATE TABLE kept_{name} AS SELECT * FROM {name}" for name in TABLES))
        yield Original(ids, database)


@contextmanager
def restored(database: OldDatabase) -> Iterator[None]:
    """The kept rows are put back at the end."""
    try:
        yield
    finally:
        database.script(
            ";".join(f"DELETE FROM {name}; INSERT INTO {name} SELECT * FROM kept_{name}" for name in TABLES)
        )


@pytest.fixture
def cli_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], CommandLine]:
    """Makes a command line that looks at a database."""
    for name in os.environ:
        if name.startswith("CASENOTES_") and not name.startswith("CASENOTES_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def at(url: str) -> CommandLine:
        monkeypatch.setenv("CASENOTES_DATABASE_URL", url)
        return CommandLine(tmp_path, url, capsys)

    return at


@pytest.fixture
def recorded_file(original_file: Original, tmp_path: Path, cli_at: Callable[[str], CommandLine]) -> Recorded:
    """The record in an SQLite file of its own."""
    assert isinstance(original_file.database, SqliteDatabase)
    database = SqliteDatabase(tmp_path / "casenotes.db")
    shutil.copy(original_file.database.path, database.path)
    return Recorded(database, original_file.ids, cli_at(database.url))


@pytest.fixture(params=["sqlite", "postgres"])
def recorded(request: pytest.FixtureRequest, cli_at: Callable[[str], CommandLine]) -> Iterator[Recorded]:
    """The record in each kind of database."""
    if request.param == "sqlite":
        yield request.getfixturevalue("recorded_file")
        return
    original: Original = request.getfixturevalue("original_on_server")
    with restored(original.database):
        yield Recorded(original.database, original.ids, cli_at(original.database.url))
