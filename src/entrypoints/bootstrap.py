"""The composition root: settings become a running service. Nothing else knows which adapters there are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from casenotes.adapters import migration
from casenotes.adapters.agents import EmbeddedDiagnostician
from casenotes.adapters.context import MemoryContextStore, SqliteContextStore
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.adapters.sqlite import ledger_file
from casenotes.core.errors import InvalidSettings, LedgerUnavailable
from casenotes.core.redaction import added
from casenotes.core.service.conducting import Limits
from casenotes.core.service.leases import LeaseKeeper
from casenotes.core.service.service import Service
from casenotes.core.service.verifying import Verifying
from casenotes.entrypoints.ambient import new_id, utc_now
from casenotes.entrypoints.evidence import evidence_sources
from casenotes.entrypoints.redaction_file import read_addition
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import AgentEvent, Closing, Diagnostician, Enquiry
from casenotes.ports.ambient import Clock, RunObserver
from casenotes.ports.context import ContextStore
from casenotes.ports.ledger import Ledger

if TYPE_CHECKING:  # brings SQLAlchemy's whole ORM, which an SQLite file needs nothing of
    from sqlalchemy.ext.asyncio import AsyncEngine


async def open_ledger_at(url: str, *, migrate_first: bool = True) -> Ledger:
    """The ledger at this URL, of the schema this version needs.

    An embedded SQLite file is made and migrated by itself, unless ``migrate_first`` is false. Raises
    ``InvalidSettings``, ``LedgerUnavailable``, ``SchemaOutOfDate``.
    """
    if url.startswith("memory:"):
        from casenotes.adapters.memory import MemoryLedger

        return MemoryLedger()
    if migrate_first and url.startswith("sqlite"):
        await upgrade(url)
    ledger = _sql_ledger(url)
    try:
        await ledger.check()
    except BaseException as fault:
        await ledger.close()
        if isinstance(fault, LedgerUnavailable) and not url.startswith("sqlite"):
            raise LedgerUnavailable(f"{fault}; see that it runs and that its URL is right") from None
        raise
    return ledger


def verifying(ledger: Ledger) -> Verifying:
    """What verifies this ledger."""
    if isinstance(ledger, SqlLedger):
        from casenotes.adapters.sql.verification import SqlVerificationSource

        return Verifying(SqlVerificationSource(ledger))
    from casenotes.adapters.memory import MemoryLedger
    from casenotes.adapters.memory.verification import MemoryVerificationSource

    assert isinstance(ledger, MemoryLedger)
    return Verifying(MemoryVerificationSource(ledger))


def _sql_ledger(url: str) -> Ledger:
    if url.startswith("sqlite"):
        from casenotes.adapters import sqlite

        return sqlite.open_ledger(url)
    with _extra("postgres", needs="asyncpg", of="CASENOTES_DATABASE_URL"):
        from casenotes.adapters import postgres

        return postgres.open_ledger(url)


async def upgrade(url: str, revision: str = "head") -> migration.MigrationReport | None:
    """Bring the ledger's schema to a revision, as ``adapters.migration.upgrade`` does; ``None`` where there is none."""
    if url.startswith("memory:"):
        return None
    async with _database(url) as database:
        return await migration.upgrade(database, revision)


async def schema_status(url: str) -> migration.MigrationStatus | None:
    """Where the ledger's schema stands, ``None`` where there is none. Writes nothing. Raises ``LedgerUnavailable``."""
    if url.startswith("memory:"):
        return None
    async with _database(url) as database:
        return await migration.status(database)


@asynccontextmanager
async def _database(url: str) -> AsyncIterator[str | AsyncEngine]:
    """The database to migrate: a file's URL, or an engine whose statements may take their time."""
    if url.startswith("sqlite"):
        ledger_file(url)
        yield url
        return
    with _extra("postgres", needs="asyncpg", of="CASENOTES_DATABASE_URL"):
        from casenotes.adapters import postgres

        engine = postgres.migration_engine(url)
    try:
        yield engine
    finally:
        await engine.dispose()


def missing_file(url: str) -> Path | None:
    """The file that the ledger at this URL would be in, if it is in one and that is not there yet."""
    if not url.startswith("sqlite"):
        return None
    file = ledger_file(url)
    return None if file.exists() else file


def open_context_at(settings: Settings, clock: Clock) -> ContextStore:
    """The conversation store of these settings. It is not reached yet, and need not be there: see ``readyz``."""
    url, window, ttl = settings.context_url, settings.context_window, settings.context_ttl.total_seconds()
    if url.startswith("memory:"):
        return MemoryContextStore(window=window, ttl=ttl, clock=clock)
    if url.startswith("sqlite"):
        path = url.partition("://")[2].removeprefix("/")
        return SqliteContextStore(path, window=window, ttl=ttl, clock=clock)
    with _extra("redis", needs="redis", of="CASENOTES_CONTEXT_URL"):
        from casenotes.adapters.context.redis import RedisContextStore

    return RedisContextStore(url, window=window, ttl=ttl)


@contextmanager
def _extra(extra: str, *, needs: str, of: str) -> Iterator[None]:
    """What is imported here comes with an extra of the package: without it, say so."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name != needs:
            raise
        raise InvalidSettings(
            f"{of}: its kind of URL needs the extra {extra!r}: pip install 'casenotes[{extra}]'"
        ) from None


def configured_diagnostician(settings: Settings) -> Diagnostician:
    """The diagnostician of these settings: with a language model where one is set.

    Raises ``InvalidSettings``, ``InvalidEvidence``.
    """
    if settings.llm_base_url is None or settings.llm_model is None:
        return embedded_diagnostician(settings)
    with _extra("llm", needs="openai", of="CASENOTES_LLM_BASE_URL"):
        from casenotes.adapters.agents.llm import ChatModel, LlmDiagnostician
    model = ChatModel(
        settings.llm_base_url,
        settings.llm_model,
        settings.llm_timeout.total_seconds(),
        settings.llm_api_key,
    )
    return LlmDiagnostician(evidence_sources(settings), model, settings.run_timeout.total_seconds())


def embedded_diagnostician(settings: Settings) -> Diagnostician:
    """The deterministic diagnostician over the evidence of these settings. Raises ``InvalidEvidence``."""
    return EmbeddedDiagnostician(evidence_sources(settings))


@asynccontextmanager
async def assemble(
    settings: Settings,
    observer: RunObserver,
    diagnostician: Diagnostician | None = None,
    *,
    clock: Clock = utc_now,
    migrate_first: bool = True,
) -> AsyncIterator[Service]:
    """The use cases over the adapters of these settings, closed on the way out. Nothing runs by itself yet.

    Without a diagnostician, runs can be recorded and read, and none can be executed.
    Raises ``InvalidSettings``, ``LedgerUnavailable``, ``SchemaOutOfDate``, each with a message that says what to do.
    """
    async with AsyncExitStack() as stack:
        if settings.redaction_rules is not None:
            stack.enter_context(added(read_addition(settings.redaction_rules)))
        ledger = await open_ledger_at(settings.database_url, migrate_first=migrate_first)
        stack.push_async_callback(ledger.close)
        context = open_context_at(settings, clock)
        stack.push_async_callback(context.close)
        yield Service.over(
            ledger=ledger,
            context=context,
            diagnostician=diagnostician or _Nobody(),
            clock=clock,
            new_id=new_id,
            observer=observer,
            limits=Limits(run_timeout=settings.run_timeout, max_running=settings.max_running),
            lease=settings.run_lease,
            context_ttl=settings.context_ttl,
        )


@asynccontextmanager
async def kept(leases: LeaseKeeper) -> AsyncIterator[None]:
    """Keep these leases for as long as the block lasts."""
    keeping = asyncio.create_task(leases.keep(), name="casenotes leases")
    try:
        yield
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


@asynccontextmanager
async def open_service(
    settings: Settings,
    observer: RunObserver,
    *,
    diagnostician: Diagnostician | None = None,
    clock: Clock = utc_now,
) -> AsyncIterator[Service]:
    """A running service: its leases are kept, and on the way out its runs are finished or ended, then all is closed.

    Raises ``InvalidEvidence``, and what ``assemble`` raises.
    """
    async with AsyncExitStack() as stack:
        chosen = diagnostician or configured_diagnostician(settings)
        if diagnostician is None and isinstance(chosen, Closing):
            stack.push_async_callback(chosen.close)
        service = await stack.enter_async_context(assemble(settings, observer, chosen, clock=clock))
        await stack.enter_async_context(kept(service.leases))
        try:
            yield service
        finally:
            await service.executions.close(settings.shutdown_grace)


@frozen
class _Nobody:
    """Stands where there is no diagnostician."""

    def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        raise NotImplementedError("there is no diagnostician")
