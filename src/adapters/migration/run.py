"""Upgrading a database, and telling where it stands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Lock

from sqlalchemy import Connection, inspect
from sqlalchemy.engine import URL, make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from casenotes.adapters.migration import adoption, backfill, scripts
from casenotes.adapters.migration.connections import exclusive, file_of, open_engine
from casenotes.adapters.migration.failures import in_plain_words
from casenotes.adapters.migration.reports import Leftovers, MigrationReport, MigrationStatus, Placed

_alembic = Lock()
"""Alembic's ``op`` and ``context`` are one per process: two migrations that take turns would mix them up."""


async def upgrade(database: str | URL | AsyncEngine, revision: str = "head") -> MigrationReport:
    """Bring a database to a revision; at head, also place the old system's rows that are in no run yet.

    Each revision is one transaction: killed, a migration leaves whole revisions only, and the next one goes on. Of
    several processes that start at once one migrates, the others wait and find it done. A database at head that has
    no such rows is only read, and one that is past the revision is left as it is. An engine that is given stays open.

    Raises ``SchemaOutOfDate`` for a database that a newer version migrated or that holds only part of the old system's
    tables, ``LedgerUnavailable`` when it cannot be opened, read or written, ``InvalidInput`` for a revision that
    does not exist.
    """
    goal = scripts.resolve(revision)
    async with _connected(database) as connection, _alone_in_this_process():
        return await connection.run_sync(_upgrade, goal)


async def status(database: str | URL | AsyncEngine) -> MigrationStatus:
    """Where a database stands. Writes nothing and makes no file. Raises ``LedgerUnavailable``."""
    url = database.url if isinstance(database, AsyncEngine) else make_url(database)
    file = file_of(url)
    if file is not None and not file.exists():
        return MigrationStatus(None, scripts.resolve("head"), scripts.revisions())
    async with _connected(database) as connection:
        return await connection.run_sync(_status)


async def head_revision() -> str:
    """The newest revision this version knows."""
    return scripts.resolve("head")


def _upgrade(connection: Connection, goal: str) -> MigrationReport:
    with connection.begin():
        first = scripts.current_revision(connection)
        is_behind = bool(scripts.pending(first, goal))
    adopted, applied, placed = False, list[str](), Placed()
    while is_behind:
        with exclusive(connection):
            # Read anew: another process may have migrated while this one waited.
            current = scripts.current_revision(connection)
            if current is None and adoption.adopt(connection):
                scripts.stamp(connection, scripts.HISTORICAL_REVISION)
                adopted, current = True, scripts.HISTORICAL_REVISION
            elif path := scripts.pending(current, goal):
                placed += scripts.run(connection, path[0])
                applied.append(path[0])
                current = path[0]
        is_behind = bool(scripts.pending(current, goal))
    with connection.begin():
        last = scripts.current_revision(connection) or goal
    if last == scripts.resolve("head"):
        placed += _place_late_rows(connection)
    return MigrationReport(first, last, adopted, tuple(applied), placed, _leftovers(connection, last))


def _place_late_rows(connection: Connection) -> Placed:
    """Place what waits, a transaction for each batch; the lock is taken only when something waits."""
    placed = Placed()
    for phase in backfill.PHASES:
        after = None
        while _is_waiting(connection, phase, after):
            with exclusive(connection):
                batch = backfill.place_next(connection, phase, after)
            if batch is None:  # another process was faster
                break
            placed, after = placed + batch.placed, batch.last_id
    with connection.begin():
        has_late_cases = backfill.has_late_cases(connection)
    if has_late_cases:
        with exclusive(connection):
            backfill.mark_late_cases(connection)
    return placed


def _is_waiting(connection: Connection, phase: backfill.Phase, after: int | None) -> bool:
    with connection.begin():
        return backfill.is_waiting(connection, phase, after)


def _status(connection: Connection) -> MigrationStatus:
    head = scripts.resolve("head")
    with connection.begin():
        current = scripts.current_revision(connection)
    is_unknown = current is not None and current not in scripts.revisions()
    pending = () if is_unknown else scripts.pending(current, head)
    return MigrationStatus(current, head, pending, _leftovers(connection, current))


def _leftovers(connection: Connection, revision: str | None) -> Leftovers:
    with connection.begin():
        if revision is not None and revision != scripts.HISTORICAL_REVISION:
            return backfill.leftovers(connection)
        there = set(inspect(connection).get_table_names())
        return backfill.everything(connection) if adoption.HISTORICAL_COLUMNS.keys() <= there else Leftovers()


@asynccontextmanager
async def _connected(database: str | URL | AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A connection; what fails in the block is told in plain words. An engine made here is disposed of."""
    given = isinstance(database, AsyncEngine)
    engine = database if isinstance(database, AsyncEngine) else open_engine(database)
    try:
        with in_plain_words(engine.url):
            async with engine.connect() as connection:
                yield connection
    finally:
        if not given:
            await engine.dispose()


@asynccontextmanager
async def _alone_in_this_process() -> AsyncIterator[None]:
    # Not asyncio.Lock, which belongs to one loop; polled, so that a cancelled waiter leaves nothing behind.
    while not _alembic.acquire(blocking=False):  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    try:
        yield
    finally:
        _alembic.release()
