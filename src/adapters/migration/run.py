"""Upgrading a database, and telling where it stands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection, inspect
from sqlalchemy.engine import URL, make_url

from casenotes.adapters.migration import adoption, backfill, scripts, standing
from casenotes.adapters.migration.connections import done_on, exclusive, file_of
from casenotes.adapters.migration.failures import in_plain_words
from casenotes.adapters.migration.fitting import HISTORICAL
from casenotes.adapters.migration.reports import Leftovers, MigrationReport, MigrationStatus, Placed

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

T = TypeVar("T")

_alembic = Lock()
"""Alembic's ``op`` and ``context`` are one per process: two migrations that take turns would mix them up."""


async def upgrade(database: str | URL | AsyncEngine, revision: str = "head") -> MigrationReport:
    """Bring a database to a revision, then place the old system's rows that are in no run yet.

    Each revision is one transaction, and so is each batch of rows: killed, a migration leaves whole ones only, and the
    next one goes on. Of several processes that start at once one migrates, the others wait and find it done. A database
    that has nothing to do is only read, and one that is past the revision is left as it is. An engine that is given
    stays open.

    Raises ``SchemaOutOfDate`` for a database that a newer version migrated or that holds only part of the old system's
    tables, ``LedgerUnavailable`` when it cannot be opened, read or written, ``InvalidInput`` for a revision that
    does not exist.
    """
    goal = scripts.resolve(revision)
    async with _alone_in_this_process():
        return await _done_on(database, partial(_upgrade, goal=goal))


async def status(database: str | URL | AsyncEngine) -> MigrationStatus:
    """Where a database stands. Writes nothing and makes no file. Raises ``LedgerUnavailable``."""
    file = file_of(_url(database))
    if file is not None and not file.exists():
        return MigrationStatus(None, scripts.resolve("head"), scripts.revisions())
    return await _done_on(database, _status)


async def head_revision() -> str:
    """The newest revision this version knows."""
    return scripts.revisions()[-1]


def _upgrade(connection: Connection, goal: str) -> MigrationReport:
    with connection.begin():
        first = scripts.current_revision(connection)
        is_behind = bool(scripts.pending(first, goal))
    adopted, applied = False, list[str]()
    while is_behind:
        with exclusive(connection):
            # Read anew: another process may have migrated while this one waited.
            current = scripts.current_revision(connection)
            if current is None and adoption.adopt(connection):
                scripts.stamp(connection, scripts.HISTORICAL_REVISION)
                adopted, current = True, scripts.HISTORICAL_REVISION
            elif path := scripts.pending(current, goal):
                scripts.run(connection, path[0])
                applied.append(path[0])
                current = path[0]
        is_behind = bool(scripts.pending(current, goal))
    with connection.begin():
        last = scripts.current_revision(connection) or goal
    placed = backfill.place_all(connection) if scripts.has_runs(last) else Placed()
    return MigrationReport(first, last, adopted, tuple(applied), placed, _old_rows(connection, last)[1])


def _status(connection: Connection) -> MigrationStatus:
    head = scripts.resolve("head")
    with connection.begin():
        current = scripts.current_revision(connection)
    is_unknown = current not in (None, head) and current not in scripts.revisions()
    pending = () if is_unknown else scripts.pending(current, head)
    return MigrationStatus(current, head, pending, *_old_rows(connection, current))


def _old_rows(connection: Connection, revision: str | None) -> tuple[Placed, Leftovers]:
    """What waits to be placed, and what cannot be."""
    has_runs = revision is not None and scripts.has_runs(revision)
    with connection.begin():
        if not has_runs and not HISTORICAL.keys() <= set(inspect(connection).get_table_names()):
            return Placed(), Leftovers()
        return (
            standing.waiting(connection, has_runs=has_runs),
            standing.leftovers(connection, has_runs=has_runs),
        )


def _url(database: str | URL | AsyncEngine) -> URL:
    return make_url(database) if isinstance(database, str | URL) else database.url


async def _done_on(database: str | URL | AsyncEngine, work: Callable[[Connection], T]) -> T:
    """What the work gives, done on a connection; what fails is told in plain words."""
    with in_plain_words(_url(database)):
        return await done_on(database, work)


@asynccontextmanager
async def _alone_in_this_process() -> AsyncIterator[None]:
    # Not asyncio.Lock, which belongs to one loop; polled, so that a cancelled waiter leaves nothing behind.
    while not _alembic.acquire(blocking=False):  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    try:
        yield
    finally:
        _alembic.release()
