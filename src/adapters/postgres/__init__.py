"""The ledger in PostgreSQL: many writers, and snapshots that are read-only to the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from casenotes.adapters.migration import EXPECTED_REVISION
from casenotes.adapters.postgres.commits import PostgresCommits
from casenotes.adapters.postgres.pool import PostgresConnections, PostgresPool
from casenotes.adapters.sql.dialect import POSTGRES
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.core.errors import InvalidSettings

CONNECT_SECONDS: Final = 5
COMMAND_SECONDS: Final = 30
"""How long one statement may take, its lock waits included: a connection that is dead but not closed is found out."""

TURN_SECONDS: Final = 30
"""How long a unit of work, or a view, waits for a connection."""

CONNECTIONS: Final = 20
"""How many connections there may be at once. More would not make the database faster, only the queue shorter."""

_SERVER_SETTINGS: Final = {"application_name": "casenotes"}
_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "host": (),
    "port": (),
    "pgbouncer": ("transaction",),
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
}
"""What may stand behind the ``?`` of a URL, and with which values, if not with any."""

_UNPREPARED: Final[Mapping[str, Any]] = {"statement_cache_size": 0}
"""Every statement is the unnamed one, parsed anew: a named one that was prepared on one server connection is
unknown, or means another, on the next, and nobody would ever close it there."""

_WRITING: Final = "BEGIN"
_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


def open_ledger(url: str, *, expected_revision: str = EXPECTED_REVISION) -> SqlLedger:
    """The ledger in the database that the URL names (``postgresql://user@host/database``). Nothing is opened yet.

    ``?pgbouncer=transaction`` says that a pooler stands in between which gives each transaction another server
    connection. Raises ``InvalidSettings`` for a URL that is not one of PostgreSQL.
    """
    address, arguments = _parsed(url)
    _, connecting = POSTGRES.compiler.create_connect_args(address)
    pool = PostgresPool(
        size=CONNECTIONS,
        turn_seconds=TURN_SECONDS,
        arguments={**connecting, **arguments, "command_timeout": COMMAND_SECONDS},
        is_behind_pooler="statement_cache_size" in arguments,
    )
    writing = PostgresConnections(pool, _WRITING)
    return SqlLedger(
        writing=writing,
        reading=PostgresConnections(pool, _READING),
        commits=PostgresCommits(writing),
        dialect=POSTGRES,
        expected_revision=expected_revision,
    )


def migration_engine(url: str) -> AsyncEngine:
    """An engine for migrations: one connection at a time, and statements may take as long as they need.

    The URL is one that ``open_ledger`` takes; raises as that does. The caller disposes of the engine.
    """
    address, arguments = _parsed(url)
    if arguments.get("statement_cache_size") == 0:
        arguments = {**arguments, "prepared_statement_cache_size": 0, "prepared_statement_name_func": str}
    return create_async_engine(address, connect_args=arguments, poolclass=NullPool, hide_parameters=True)


def _parsed(url: str) -> tuple[URL, Mapping[str, Any]]:
    """The address, and what the driver is to be told for it."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InvalidSettings(
            "the ledger's URL cannot be read: postgresql://user@host/database is expected"
        ) from None
    if parsed.drivername not in ("postgres", "postgresql", "postgresql+asyncpg"):
        raise InvalidSettings(
            "the ledger's URL is not one of PostgreSQL: postgresql://user@host/database is expected"
        )
    for name, allowed in _PARAMETERS.items():
        if name in parsed.query and allowed and parsed.query[name] not in allowed:
            raise InvalidSettings(f"the ledger's URL: {name} may be {' or '.join(map(repr, allowed))} only")
    if not parsed.query.keys() <= _PARAMETERS.keys():
        raise InvalidSettings(f"the ledger's URL takes {', '.join(_PARAMETERS)} only")
    arguments: dict[str, Any] = {"timeout": CONNECT_SECONDS, "server_settings": _SERVER_SETTINGS}
    if "sslmode" in parsed.query:
        arguments["ssl"] = parsed.query["sslmode"]
    if "pgbouncer" in parsed.query:
        arguments |= _UNPREPARED
    address = parsed.set(drivername="postgresql+asyncpg")
    return address.difference_update_query(["sslmode", "pgbouncer"]), arguments
