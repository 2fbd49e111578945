"""What differs between the databases, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import sqlalchemy as sa
from attrs import frozen
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.sql import Executable

from casenotes.core.text import Json, json_text

Insert: TypeAlias = sqlite.Insert | postgresql.Insert
"""An insert that can settle a conflict: the two have the same methods, but each compiles on its own database only."""


@frozen(eq=False)
class Dialect:
    """A database's ways, where statements that are otherwise the same must differ.

    The read transaction differs too: it is a property of the engine that views are opened on (see the module
    that makes the engines). Row locks need no entry: SQLite's compiler leaves ``FOR UPDATE`` out, and there
    a unit of work has the database to itself.
    """

    driver: str
    """The driver's package. Its errors come as they are, unwrapped, while a connection is made ready for use."""
    insert: Callable[[sa.Table], Insert]
    position: Callable[..., sa.ColumnElement[int]]
    """Where a text stands within another, 0 if nowhere. Unlike LIKE, it has no special characters."""
    locks_rows: bool
    """Whether writers hold rows, and may wait for each other's; else one has the database to itself."""
    writes_within: bool
    """Whether one statement may write to several tables, by ``WITH``."""
    compiler: sa.engine.Dialect
    """How statements and values are written for this driver."""
    has_revision: Executable
    """Asks, as ``known``, whether there is a table that tells the schema's revision."""
    explain: Callable[[BaseException], str]
    """What a driver's error means, in words that are safe to show: never the driver's own."""

    def contains(self, column: sa.ColumnElement[Any], text: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
        """Whether a column contains a text, case aside for ASCII letters at least; never for NULL."""
        return self.position(sa.func.lower(column), sa.func.lower(text)) > 0


_SQLITE_WORDS = {
    "SQLITE_BUSY": "the ledger's file is held by another process",
    "SQLITE_LOCKED": "the ledger's file is held by another process",
    "SQLITE_READONLY": "the ledger's file is read-only",
    "SQLITE_PERM": "the ledger's file may not be opened",
    "SQLITE_AUTH": "the ledger's file may not be opened",
    "SQLITE_CANTOPEN": "the ledger's file cannot be opened",
    "SQLITE_FULL": "the ledger's disk is full",
    "SQLITE_IOERR": "the ledger's disk failed",
    "SQLITE_CORRUPT": "the ledger's file is damaged",
    "SQLITE_NOTADB": "the ledger's file is not an SQLite database",
    "SQLITE_ERROR": "the ledger refused a statement: its tables may be of another version",
}


def _explain_sqlite(error: BaseException) -> str:
    code = str(getattr(error, "sqlite_errorname", "SQLITE_UNKNOWN"))
    primary = "_".join(code.split("_")[:2])  # SQLITE_IOERR_WRITE is an SQLITE_IOERR
    return f"{_SQLITE_WORDS.get(primary, 'the ledger could not do the work')} ({code})"


_POSTGRES_WORDS = {
    "08": "the ledger's database cannot be reached",
    "22": "the ledger's database cannot hold a value",
    "25": "the ledger's database is read-only",
    "28": "the ledger's database refuses the user or password",
    "3D": "the ledger's database does not exist",
    "40": "the ledger's database gave way to other work",
    "42": "the ledger refused a statement: its tables may be of another version",
    "53": "the ledger's database is out of disk, memory or connections",
    "55": "the ledger's database cannot have what others hold",
    "57": "the ledger's database is shutting down or stopped the work",
    "58": "the ledger's database failed",
}


def _explain_postgres(error: BaseException) -> str:
    code = getattr(error, "sqlstate", None)
    if not isinstance(code, str):
        return "the ledger's database cannot be reached"
    return f"{_POSTGRES_WORDS.get(code[:2], 'the ledger could not do the work')} (SQLSTATE {code})"


def _json_or_text(stored: str) -> Json:
    """A JSON column's value. An adopted file may hold any text there: what is no JSON is read as a string."""
    try:
        value: Json = json.loads(stored, parse_constant=str)
    except (ValueError, RecursionError, TypeError):
        return str(stored)
    return value


# As SQLAlchemy's own engines make them; their signatures are not typed for others.
_SQLITE: Callable[..., sa.engine.Dialect] = SQLiteDialect
_POSTGRES: Callable[..., sa.engine.Dialect] = PGDialect_asyncpg

SQLITE = Dialect(
    driver="sqlite3",
    insert=sqlite.insert,
    position=sa.func.instr,
    locks_rows=False,
    writes_within=False,
    compiler=_SQLITE(json_serializer=json_text, json_deserializer=_json_or_text, paramstyle="qmark"),
    has_revision=sa.text("SELECT count(*) AS known FROM sqlite_master WHERE name = 'alembic_version'"),
    explain=_explain_sqlite,
)
POSTGRES = Dialect(
    driver="asyncpg",
    insert=postgresql.insert,
    position=sa.func.strpos,
    locks_rows=True,
    writes_within=True,
    compiler=_POSTGRES(json_serializer=json_text),
    has_revision=sa.text("SELECT to_regclass('alembic_version') IS NOT NULL AS known"),
    explain=_explain_postgres,
)
