"""What ledgers send to their databases, heard at PostgreSQL's driver and where SQLite's is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import asyncpg  # type: ignore[import-untyped]

from casenotes.adapters.postgres.pool import PostgresConnections
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.adapters.sqlite import threads


@contextmanager
def heard(note: Callable[[str], object]) -> Iterator[None]:
    """Note every statement, white space folded, that is sent inside the block, transactions' own words included."""
    with heard_in_full(lambda statement, _: note(statement)):
        yield


@contextmanager
def heard_in_full(note: Callable[[str, Sequence[Any]], object]) -> Iterator[None]:
    """The same with the arguments of each statement, as the driver is given them; the first, if it is done for several.

    What makes a new connection ready for use is left out: it belongs to no use.
    """

    def listed(sent: Callable[..., Any]) -> Callable[..., Any]:
        def send(connection: object, statement: str, arguments: Sequence[Any]) -> Any:
            note(" ".join(statement.split()), arguments)
            return sent(connection, statement, arguments)

        return send

    def loose(sent: Callable[..., Any]) -> Callable[..., Any]:
        def send(connection: object, statement: str, *arguments: Any, **options: Any) -> Any:
            if not statement.startswith("SET "):
                note(" ".join(statement.split()), arguments)
            return sent(connection, statement, *arguments, **options)

        return send

    def each(sent: Callable[..., Any]) -> Callable[..., Any]:
        def send(connection: object, statement: str, arguments: Sequence[Sequence[Any]]) -> Any:
            note(" ".join(statement.split()), arguments[0])
            return sent(connection, statement, arguments)

        return send

    with (
        patch.object(asyncpg.Connection, "fetch", loose(asyncpg.Connection.fetch)),
        patch.object(asyncpg.Connection, "fetchmany", each(asyncpg.Connection.fetchmany)),
        patch.object(asyncpg.Connection, "execute", loose(asyncpg.Connection.execute)),
        patch.object(threads, "fetch", listed(threads.fetch)),
        patch.object(threads, "fetch_plain", listed(threads.fetch_plain)),
        patch.object(threads, "write", listed(threads.write)),
        patch.object(threads, "say", loose(threads.say)),
    ):
        yield


def lent_by(ledger: SqlLedger) -> int:
    """How many of its connections are out at the moment."""
    if isinstance(ledger.writing, PostgresConnections):
        return ledger.writing.pool.lent  # of both kinds
    kinds = (ledger.writing, ledger.reading)
    return sum(kind.lent for kind in kinds if isinstance(kind, threads.SqliteConnections))
