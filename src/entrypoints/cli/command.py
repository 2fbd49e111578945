"""What a command is, and the record that most of them look at."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from attrs import frozen

from casenotes.core.errors import InvalidSettings, LedgerUnavailable
from casenotes.core.service.service import Service
from casenotes.entrypoints.settings import Settings


@frozen
class Command:
    """One command. ``run`` gives the exit status: 0, or 1 when what was asked for did not come about.

    A ``CasenotesError`` that leaves ``run`` is told in one line; ``InvalidInput`` and ``InvalidSettings`` are status 2.
    """

    name: str
    summary: str
    example: str
    arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], Coroutine[Any, Any, int]]


def add_json(parser: ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON, in the shapes of the HTTP API")


@asynccontextmanager
async def opened_record() -> AsyncIterator[Service]:
    """The record of the environment's settings, as it is: it is not made, not migrated, and no run is executed.

    Raises ``InvalidSettings``, ``LedgerUnavailable``, ``SchemaOutOfDate``, with what to do.
    """
    from casenotes.entrypoints import bootstrap  # loads the drivers
    from casenotes.entrypoints.observing import LoggingObserver

    settings = Settings.from_environ()
    if settings.database_url.startswith("memory:"):
        raise InvalidSettings("CASENOTES_DATABASE_URL: memory:// is gone with its process; name a database")
    missing = bootstrap.missing_file(settings.database_url)
    if missing is not None:
        raise LedgerUnavailable(
            f"there is no record in {missing}: see CASENOTES_DATABASE_URL, or begin one with casenotes serve or ask"
        )
    await bootstrap.schema_status(settings.database_url)  # tells what is wrong with a file, and what to do
    async with bootstrap.assemble(settings, LoggingObserver(), migrate_first=False) as service:
        with advised():
            yield service


@contextmanager
def advised() -> Iterator[None]:
    """A ledger that fails in the middle of the work is told with what to do."""
    try:
        yield
    except LedgerUnavailable as error:
        raise LedgerUnavailable(
            f"{error}; try again, and if that does not help, casenotes migrate status says more"
        ) from error
