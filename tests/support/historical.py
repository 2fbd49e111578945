"""Databases of the old system for tests, looked at through the drivers and nothing of ours."""

from __future__ import annotations

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias, TypeVar

import asyncpg  # type: ignore[import-untyped]
from attrs import frozen
from sqlalchemy import Connection
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

Row: TypeAlias = dict[str, Any]
Columns: TypeAlias = dict[str, dict[str, tuple[Any, ...]]]
T = TypeVar("T")

MOMENT = "2025-06-01 00:00:00.000000"
TABLES = ("diagnosis_session", "agent_step", "tool_invocation", "case_library")

_SCRIPTS = Path(__file__).parent.parent / "migrations"


class OldDatabase(ABC):
    """A database, which tests fill and look into. ``?`` marks a parameter; times are read as text in UTC."""

    dialect: str
    url: str

    @abstractmethod
    def script(self, statements: str) -> None: ...

    @abstractmethod
    def rows(self, query: str, *parameters: object) -> list[Row]: ...

    @abstractmethod
    def columns(self) -> Columns:
        """table -> column -> (type, not null, default, ...)."""

    @abstractmethod
    def indexes(self) -> dict[str, str]:
        """index -> the statement that made it."""

    @abstractmethod
    def dump(self) -> list[str]:
        """Schema and rows, all of them."""

    def make_historical(self, *, unique: bool = True, with_rows: bool = True, schema: str = "") -> None:
        """The old system's tables. Not ``unique``: session ids may repeat, as in tables made by hand.

        ``schema`` names other tables for the same rows.
        """
        tables, insert, inserts = (
            (_SCRIPTS / f"historical_{self.dialect}.sql").read_text().partition("INSERT")
        )
        if schema:
            tables = (_SCRIPTS / schema).read_text()
        self.script(tables if unique else tables.replace("NOT NULL UNIQUE", "NOT NULL"))
        if with_rows:
            self.script(insert + inserts)

    def execute(self, statement: str, *parameters: object) -> None:
        self.rows(statement, *parameters)

    def row(self, query: str, *parameters: object) -> Row:
        [only] = self.rows(query, *parameters)
        return only

    def insert_session(self, session_id: str, **given: object) -> None:
        """A row as the old system writes it; a finished one unless ``given`` says otherwise."""
        stored = {"session_id": session_id, "status": "SUCCESS", "created_at": MOMENT, "updated_at": MOMENT}
        self.insert("diagnosis_session", **stored | given)

    def insert_step(self, session_id: str, **given: object) -> None:
        self.insert("agent_step", **{"session_id": session_id, "created_at": MOMENT} | given)

    def insert_tool(self, session_id: str, **given: object) -> None:
        self.insert("tool_invocation", **{"session_id": session_id, "created_at": MOMENT} | given)

    def insert_run(self, run_id: str, session_id: str, **given: object) -> None:
        """A run as the new system writes it, at 0002 and later."""
        stored = {"run_id": run_id, "session_id": session_id, "query": "q", "status": "SUCCESS"}
        times = {"agent_flow": "CHAT", "created_at": MOMENT, "updated_at": MOMENT}
        self.insert("diagnosis_run", **stored | times | given)

    def insert(self, table: str, **stored: object) -> None:
        marks = ", ".join("?" * len(stored))
        self.execute(f"INSERT INTO {table} ({', '.join(stored)}) VALUES ({marks})", *stored.values())

    def run(self, work: Callable[[Connection], T]) -> T:
        """Do this in one transaction of SQLAlchemy's."""

        async def transaction() -> T:
            engine = create_async_engine(self.url)
            try:
                async with engine.begin() as connection:
                    return await connection.run_sync(work)
            finally:
                await engine.dispose()

        return asyncio.run(transaction())


@frozen
class SqliteDatabase(OldDatabase):
    path: Path
    dialect = "sqlite"

    @property
    def url(self) -> str:  # type: ignore[override]
        return f"sqlite+aiosqlite:///{self.path}"

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """A connection that commits each statement at once."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            yield connection

    def script(self, statements: str) -> None:
        with self.connected() as connection:
            connection.executescript(statements)

    def rows(self, query: str, *parameters: object) -> list[Row]:
        with self.connected() as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query, parameters)]

    def columns(self) -> Columns:
        with self.connected() as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            return {
                table: {info[1]: info[2:] for info in connection.execute(f"PRAGMA table_info({table})")}
                for (table,) in tables
                if not table.startswith("sqlite_")
            }

    def indexes(self) -> dict[str, str]:
        made = self.rows("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
        return {each["name"]: each["sql"] for each in made}

    def dump(self) -> list[str]:
        with self.connected() as connection:
            return list(connection.iterdump())


@frozen
class PostgresDatabase(OldDatabase):
    url: str
    dialect = "postgres"

    def script(self, statements: str) -> None:
        self._with(lambda connection: connection.execute(statements))

    def rows(self, query: str, *parameters: object) -> list[Row]:
        pieces = query.split("?")
        values = [*map(_literal, parameters), ""]
        text = "".join(piece + value for piece, value in zip(pieces, values, strict=True))
        return [
            {name: _readable(value) for name, value in row.items()}
            for row in self._with(lambda connection: connection.fetch(text))
        ]

    @contextmanager
    def in_transaction(self, statement: str) -> Iterator[None]:
        """While the block lasts, a connection of another thread is in a transaction that began with this."""
        began, done = Event(), Event()

        async def hold(connection: Any) -> None:
            async with connection.transaction():
                await connection.execute(statement)
                began.set()
                await asyncio.to_thread(done.wait, 60)

        with ThreadPoolExecutor(1) as thread:
            held = thread.submit(self._with, hold)
            try:
                assert began.wait(30)
                yield
            finally:
                done.set()
            held.result(30)

    def columns(self) -> Columns:
        found = self.rows(
            "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull, "
            "pg_get_expr(d.adbin, d.adrelid) AS filled, a.attidentity::text "
            "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
            "LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
            "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 "
            "AND NOT a.attisdropped ORDER BY c.relname, a.attnum"
        )
        tables: Columns = {}
        for each in found:
            table, column, *rest = each.values()
            tables.setdefault(table, {})[column] = tuple(rest)
        return tables

    def indexes(self) -> dict[str, str]:
        made = self.rows("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'")
        own = "alembic_version_pkc"
        return {each["indexname"]: each["indexdef"] for each in made if each["indexname"] != own}

    def dump(self) -> list[str]:
        columns = self.columns()
        rows = (
            f"{table} {row}" for table in columns for row in self.rows(f"SELECT * FROM {table} ORDER BY 1")
        )
        return [*map(str, columns.items()), *map(str, sorted(self.indexes().items())), *rows]

    def _with(self, work: Callable[[Any], Any]) -> Any:
        async def connected() -> Any:
            url = make_url(self.url).set(drivername="postgresql").render_as_string(hide_password=False)
            connection = await asyncpg.connect(url)
            try:
                return await work(connection)
            finally:
                await connection.close()

        return asyncio.run(connected())


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case int() | float():
            return str(value)
        case _:
            return "'" + str(value).replace("'", "''") + "'"


def _readable(value: object) -> object:
    if not isinstance(value, datetime):
        return value
    moment = value if value.tzinfo is None else value.astimezone(UTC)
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")


def url(path: Path) -> str:
    return SqliteDatabase(path).url


def make_historical(path: Path, *, with_rows: bool = True) -> None:
    SqliteDatabase(path).make_historical(with_rows=with_rows)


def rows(path: Path, query: str, *parameters: object) -> list[Row]:
    return SqliteDatabase(path).rows(query, *parameters)


def columns(path: Path) -> Columns:
    return SqliteDatabase(path).columns()


def insert_session(path: Path, session_id: str, **given: object) -> None:
    SqliteDatabase(path).insert_session(session_id, **given)


def insert_step(path: Path, session_id: str, **given: object) -> None:
    SqliteDatabase(path).insert_step(session_id, **given)


def insert_tool(path: Path, session_id: str, **given: object) -> None:
    SqliteDatabase(path).insert_tool(session_id, **given)
