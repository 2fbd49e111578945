"""The ledger in an SQLite file: one writer at a time, readers beside it, every commit on the disk."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from casenotes.adapters.migration import EXPECTED_REVISION
from casenotes.adapters.sql.dialect import SQLITE
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.adapters.sqlite.commits import SqliteCommits
from casenotes.adapters.sqlite.threads import SqliteConnections
from casenotes.adapters.write_ahead import log_ahead
from casenotes.core.errors import InvalidSettings, LedgerUnavailable

BUSY_SECONDS: Final = 5
"""How long a statement waits for another process that holds the file."""

TURN_SECONDS: Final = 30
"""How long a unit of work, or a view, waits for the others of this process."""

READERS: Final = 8

_SETTINGS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
)
_READ_ONLY: Final = "PRAGMA query_only = ON"


def open_ledger(url: str, *, expected_revision: str = EXPECTED_REVISION) -> SqlLedger:
    """The ledger in the file that the URL names (``sqlite:///path``); the file must be there, with its tables.

    Nothing is opened yet. Raises ``InvalidSettings`` for a URL that names no file.
    """
    file = ledger_file(url)
    writing = SqliteConnections(
        "writer", "BEGIN IMMEDIATE", 1, TURN_SECONDS, lambda: _opened(file, _SETTINGS)
    )
    return SqlLedger(
        writing=writing,
        reading=SqliteConnections(
            "reader", "BEGIN", READERS, TURN_SECONDS, lambda: _opened(file, (*_SETTINGS, _READ_ONLY))
        ),
        commits=SqliteCommits(writing),
        dialect=SQLITE,
        expected_revision=expected_revision,
    )


def ledger_file(url: str) -> Path:
    """The file that a ``sqlite:///path`` or ``sqlite+aiosqlite:///path`` URL names, as an absolute path.

    Raises ``InvalidSettings`` for another kind of URL and for one without a file.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InvalidSettings("the ledger's URL cannot be read: sqlite:///path is expected") from None
    if parsed.drivername not in ("sqlite", "sqlite+aiosqlite"):
        raise InvalidSettings(f"not an SQLite URL: {parsed.drivername}: sqlite:///path is expected")
    if not parsed.database or parsed.database.startswith((":memory:", "file:")):
        raise InvalidSettings("the ledger's URL names no file: sqlite:///path is expected (or memory://)")
    if parsed.query:
        raise InvalidSettings("the ledger's SQLite URL takes no parameters")
    return Path(parsed.database).absolute()


def _opened(file: Path, settings: Sequence[str]) -> sqlite3.Connection:
    if not file.is_file() or not os.access(file, os.R_OK):
        raise LedgerUnavailable("the ledger's file is not there, or may not be read")
    # mode=rw: a file that was moved away must be an error, not a new and empty ledger.
    connection = sqlite3.connect(
        f"{file.as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # the driver begins nothing by itself
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        log_ahead(connection, BUSY_SECONDS)
        for setting in settings:
            connection.execute(setting)
    except BaseException:
        connection.close()
        raise
    return connection
