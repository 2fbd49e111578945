"""The service under test: the real one, on a port of its own, over each backend."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from attrs import evolve, field, frozen
from support.http import Client, client_of
from support.postgres import put_rows, rows
from support.scripted import Scripted, usual

from casenotes.adapters.memory import MemoryLedger
from casenotes.adapters.rows import to_row
from casenotes.adapters.sql.tables import diagnosis_session
from casenotes.core.model import ChatSession, HistoricalSession
from casenotes.core.service.service import Service
from casenotes.entrypoints.http.server import listening
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import Diagnostician

LONG_AGO = datetime(2024, 1, 1, tzinfo=UTC)


@frozen
class Running:
    """A running service, a client of it, and its database file if it has one."""

    client: Client
    service: Service
    settings: Settings
    database: Path | None

    @property
    def has_rows(self) -> bool:
        """Whether there is a database to look into."""
        return not self.settings.database_url.startswith("memory:")

    def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        """What a query finds in the database itself, past the service. Values stand where it has question marks."""
        assert self.has_rows, "this backend has no database to look into"
        if self.database is None:
            names = {f"value_{number}": value for number, value in enumerate(values)}
            for name in names:
                query = query.replace("?", f":{name}", 1)
            with ThreadPoolExecutor(1) as thread:  # this one's event loop is at work
                found = thread.submit(asyncio.run, rows(self.settings.database_url, query, **names)).result()
            return [{name: _as_text(value) for name, value in row.items()} for row in found]
        with closing(sqlite3.connect(self.database)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query, values)]

    async def quiet(self) -> None:
        """Wait until no run is executed here; each is a task that is named by its run id."""
        running = [task for task in asyncio.all_tasks() if task.get_name().startswith("run-")]
        if running:
            await asyncio.wait(running)

    async def seed_history(self, session_id: str, answer: str | None = "an old answer") -> None:
        """Put a row of the old system into the ledger, for which no run was made."""
        old = HistoricalSession(session_id, "an old question", answer, "DONE", "OLD", LONG_AGO, LONG_AGO)
        if isinstance(self.service.ledger, MemoryLedger):
            await self.service.ledger.seed_history(old)
            return
        await put_rows(self.settings.database_url, diagnosis_session, to_row(old))

    async def seed_session(self, session_id: str) -> None:
        """Put a chat session without a run into the ledger."""
        async with self.service.ledger.work() as work:
            await work.sessions.ensure(ChatSession(session_id, created_at=LONG_AGO, last_active_at=LONG_AGO))
            await work.commit()


def _as_text(value: Any) -> Any:
    """JSON as its text, which is what SQLite has."""
    return json.dumps(value) if isinstance(value, dict | list) else value


@frozen
class Backend:
    """Where a test's service keeps its ledger and its conversations."""

    name: str
    settings: Settings
    database: Path | None = field(default=None)

    @asynccontextmanager
    async def serving(
        self, diagnostician: Diagnostician | None = None, *, key: str | None = None, **changed: Any
    ) -> AsyncIterator[Running]:
        """The service, with these settings changed; its diagnostician is scripted unless one is given."""
        settings = evolve(self.settings, **changed)
        chosen = Scripted(usual) if diagnostician is None else diagnostician
        async with (
            listening(settings, diagnostician=chosen) as here,
            client_of(here.url, key=key) as client,
        ):
            yield Running(client, here.service, settings, self.database)

    def run(
        self,
        scenario: Callable[[Running], Awaitable[None]],
        diagnostician: Diagnostician | None = None,
        *,
        key: str | None = None,
        **changed: Any,
    ) -> None:
        """Play a scenario against a service of its own."""

        async def play() -> None:
            async with self.serving(diagnostician, key=key, **changed) as here:
                await scenario(here)

        asyncio.run(play())


def memory_backend() -> Backend:
    settings = Settings(
        database_url="memory://", context_url="memory://", shutdown_grace=timedelta(seconds=0)
    )
    return Backend("memory", settings)


def sqlite_backend(folder: Path) -> Backend:
    database = folder / "casenotes.db"
    settings = Settings(
        database_url=f"sqlite+aiosqlite:///{database}",
        context_url=f"sqlite:///{folder / 'context.db'}",
        shutdown_grace=timedelta(seconds=0),
    )
    return Backend("sqlite", settings, database)


def postgres_backend(url: str, context: str) -> Backend:
    """The ledger in this database of PostgreSQL, and conversations in this one of Redis."""
    settings = Settings(database_url=url, context_url=context, shutdown_grace=timedelta(seconds=0))
    return Backend("postgres", settings)


@asynccontextmanager
async def listening_app(app: web.Application) -> AsyncIterator[Client]:
    """A client of an application on a port of its own."""
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with client_of(f"http://127.0.0.1:{runner.addresses[0][1]}") as client:
            yield client
    finally:
        await runner.cleanup()
