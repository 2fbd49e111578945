from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from support.historical import OldDatabase, PostgresDatabase, SqliteDatabase
from support.postgres import PostgresDatabases


@pytest.fixture(params=["sqlite", "postgres"])
def dialect(request: pytest.FixtureRequest) -> str:
    """Each kind of database in turn."""
    kind: str = request.param
    return kind


@pytest.fixture
def another(
    dialect: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[[], OldDatabase]]:
    """Makes empty databases of one kind."""
    numbers = count()
    with ExitStack() as stack:

        def in_file() -> OldDatabase:
            return SqliteDatabase(tmp_path / f"new 100% ä {next(numbers)}.db")

        def on_server() -> OldDatabase:
            postgres: PostgresDatabases = request.getfixturevalue("postgres")
            return PostgresDatabase(stack.enter_context(postgres.empty()))

        yield in_file if dialect == "sqlite" else on_server


@pytest.fixture
def new(another: Callable[[], OldDatabase]) -> OldDatabase:
    """Where a database may be made."""
    return another()


@pytest.fixture
def historical(new: OldDatabase) -> OldDatabase:
    """A populated database of the old system, not migrated yet."""
    new.make_historical()
    return new


@pytest.fixture
def new_file(tmp_path: Path) -> SqliteDatabase:
    """Where an SQLite database may be made."""
    return SqliteDatabase(tmp_path / "new 100% ä.db")


@pytest.fixture
def historical_file(new_file: SqliteDatabase) -> SqliteDatabase:
    new_file.make_historical()
    return new_file


@pytest.fixture
def new_on_server(postgres: PostgresDatabases) -> Iterator[PostgresDatabase]:
    """An empty Postgres database."""
    with postgres.empty() as url:
        yield PostgresDatabase(url)


@pytest.fixture
def historical_on_server(new_on_server: PostgresDatabase) -> PostgresDatabase:
    new_on_server.make_historical()
    return new_on_server
