"""What a database's failures mean to whoever has to mend them, in sentences instead of a driver's words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from casenotes.adapters.migration.connections import file_of, named
from casenotes.core.errors import LedgerUnavailable

_HELD = "is held by someone else, who did not let go of it in time; try again once they are done"
_UNKNOWN = "refused the work; what was begun is undone, and the cause of this error says why"
_UNREACHABLE = "cannot be reached; see that it runs and that its address is right"

_SQLITE = {
    sqlite3.SQLITE_BUSY: _HELD,
    sqlite3.SQLITE_LOCKED: _HELD,
    sqlite3.SQLITE_READONLY: "cannot be written; give this user the right to write the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; its folder must exist, and this user must be able to write there",
    sqlite3.SQLITE_NOTADB: "is not an SQLite database; name another file, or move this one out of the way",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a backup, or move it out of the way to start anew",
    sqlite3.SQLITE_FULL: "cannot grow, the disk is full; make room and try again",
    sqlite3.SQLITE_IOERR: "could not be read or written; look at the disk it is on, then try again",
}

# By SQLSTATE, else by its class.
_POSTGRES = {
    "08": _UNREACHABLE,
    "25006": "takes no writes; name the primary server, not a replica, and see that no setting makes it read-only",
    "28": "refuses this user or its password; see that both are right and that the server lets this user in",
    "3D": "does not exist; create it, or name the one that is meant",
    "40": "gave way to other work; what was begun is undone, try again",
    "42501": "does not let this user change its tables; migrate as the user that owns them",
    "53100": "cannot grow, the disk is full; make room and try again",
    "53300": "takes no more connections; try again once some are free",
    "53": "is out of memory or of another resource; see to the server, then try again",
    "55P03": "has a table or a row that other work holds, and did not let go of in time; try again once no "
    "transaction stays open on the old system's tables",
    "57P03": "is starting or stopping; try again in a moment",
    "57": "stopped the work, or is being shut down; what was begun is undone, try again",
    "58": "failed at its files; look at the server's disk and log",
}


@contextmanager
def in_plain_words(url: URL) -> Iterator[None]:
    """Failures of the database become ``LedgerUnavailable``: what is wrong with which database, and what to do.

    The driver's own error is the cause of the one that is raised.
    """
    file = file_of(url)
    if file is not None and not (file.is_file() or os.access(file.parent, os.W_OK | os.X_OK)):
        # Not left to the driver: when it cannot open a file, its thread outlives the event loop and fails there.
        raise LedgerUnavailable(f"{named(url)} {_SQLITE[sqlite3.SQLITE_CANTOPEN]}")
    try:
        yield
    except Exception as error:
        what = _in_sqlite(error) if url.get_backend_name() == "sqlite" else _in_postgres(error)
        if what is None:
            raise
        raise LedgerUnavailable(f"{named(url)} {what}") from error


def _in_sqlite(error: Exception) -> str | None:
    if not isinstance(error, DBAPIError | OSError):
        return None
    return _SQLITE.get(_sqlite_code(error) & 0xFF, _UNKNOWN)


def _in_postgres(error: Exception) -> str | None:
    # While it connects, the driver raises its own errors, which SQLAlchemy does not wrap.
    state = getattr(error.orig if isinstance(error, DBAPIError) else error, "sqlstate", None)
    if isinstance(state, str):
        return _POSTGRES.get(state) or _POSTGRES.get(state[:2]) or _UNKNOWN
    if isinstance(error, OSError) or (isinstance(error, DBAPIError) and error.connection_invalidated):
        return _UNREACHABLE
    return _UNKNOWN if isinstance(error, DBAPIError) else None


def _sqlite_code(error: BaseException) -> int:
    """The extended result code; its lowest byte is the primary one. 0 when there is none."""
    cause: BaseException | None = error.orig if isinstance(error, DBAPIError) else error
    while cause is not None:
        if isinstance(cause, sqlite3.Error):
            return int(getattr(cause, "sqlite_errorcode", 0))
        cause = cause.__cause__
    return 0
