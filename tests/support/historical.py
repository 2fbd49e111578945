"""SQLite databases of the old system for tests, looked at through the driver and nothing of ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]

_SCRIPT = Path(__file__).parent.parent / "migrations" / "historical_sqlite.sql"


def url(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


def make_historical(path: Path, *, unique: bool = True, with_rows: bool = True) -> None:
    """The old system's database. Not ``unique``: session ids may repeat, as in tables made by hand."""
    script = _SCRIPT.read_text()
    if not with_rows:
        script = script[: script.index("INSERT")]
    with connected(path) as connection:
        connection.executescript(script if unique else script.replace("NOT NULL UNIQUE", "NOT NULL"))


@contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that commits each statement at once."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def execute(path: Path, statement: str, *parameters: object) -> None:
    with connected(path) as connection:
        connection.execute(statement, parameters)


def rows(path: Path, query: str, *parameters: object) -> list[Row]:
    with connected(path) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(query, parameters)]


def row(path: Path, query: str, *parameters: object) -> Row:
    [only] = rows(path, query, *parameters)
    return only


def dump(path: Path) -> list[str]:
    """Schema and rows, all of them, as SQL."""
    with connected(path) as connection:
        return list(connection.iterdump())


def columns(path: Path) -> dict[str, dict[str, tuple[Any, ...]]]:
    """table -> column -> (type, not null, default, place in the key)."""
    with connected(path) as connection:
        return {
            table: {info[1]: info[2:] for info in connection.execute(f"PRAGMA table_info({table})")}
            for table in _names(connection, "table")
        }


def indexes(path: Path) -> dict[str, str]:
    """index -> the statement that made it."""
    return {
        found["name"]: found["sql"]
        for found in rows(
            path, "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        )
    }


def insert_session(path: Path, session_id: str, **given: object) -> None:
    """A row as the old system writes it; a finished one unless ``given`` says otherwise."""
    moment = "2025-06-01 00:00:00.000000"
    stored = {
        "session_id": session_id,
        "status": "SUCCESS",
        "created_at": moment,
        "updated_at": moment,
    } | given
    _insert(path, "diagnosis_session", stored)


def insert_step(path: Path, session_id: str, **given: object) -> None:
    _insert(
        path, "agent_step", {"session_id": session_id, "created_at": "2025-06-01 00:00:00.000000"} | given
    )


def insert_tool(path: Path, session_id: str, **given: object) -> None:
    _insert(
        path,
        "tool_invocation",
        {"session_id": session_id, "created_at": "2025-06-01 00:00:00.000000"} | given,
    )


def _insert(path: Path, table: str, stored: Row) -> None:
    marks = ", ".join("?" * len(stored))
    execute(path, f"INSERT INTO {table} ({', '.join(stored)}) VALUES ({marks})", *stored.values())


def _names(connection: sqlite3.Connection, kind: str) -> list[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = ? ORDER BY name", (kind,))
    return [name for (name,) in found if not name.startswith("sqlite_")]
