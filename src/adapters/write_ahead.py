"""Switching an SQLite file to its write-ahead log, for every store that keeps one."""

from __future__ import annotations

import sqlite3
from time import monotonic, sleep


def log_ahead(connection: sqlite3.Connection, seconds: float) -> None:
    """Switch the file to WAL, which it then keeps.

    Of several that do so at once, SQLite lets one and refuses the others without waiting: they try again, for so many
    seconds.
    """
    end = monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > end:
                raise
        sleep(0.02)
