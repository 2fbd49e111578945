"""The SQL ledger: one for every database that SQLAlchemy can speak to and ``dialect`` has an entry for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

import sqlalchemy as sa
from attrs import define, field, frozen
from sqlalchemy.ext.asyncio import AsyncEngine

from casenotes.adapters.sql.cases import CasesReader, CasesWriter
from casenotes.adapters.sql.dialect import Dialect
from casenotes.adapters.sql.erase import erase_session
from casenotes.adapters.sql.history import HistoryReader, HistoryWriter
from casenotes.adapters.sql.journal import JournalReader, JournalWriter
from casenotes.adapters.sql.keys import KeysWriter
from casenotes.adapters.sql.runs import RunsReader, RunsWriter
from casenotes.adapters.sql.sessions import SessionsReader, SessionsWriter
from casenotes.adapters.sql.transaction import Transaction, transaction
from casenotes.core.errors import LedgerUnavailable, SchemaOutOfDate
from casenotes.core.views import Erasure

_REVISION = sa.text("SELECT version_num FROM alembic_version")


@frozen
class SqlView:
    """``casenotes.ports.ledger.LedgerView``."""

    sessions: SessionsReader
    runs: RunsReader
    journal: JournalReader
    cases: CasesReader
    history: HistoryReader


@frozen
class SqlUnitOfWork:
    """``casenotes.ports.ledger.UnitOfWork``."""

    _transaction: Transaction
    sessions: SessionsWriter
    runs: RunsWriter
    journal: JournalWriter
    cases: CasesWriter
    history: HistoryWriter
    keys: KeysWriter

    async def erase(self, session_id: str) -> Erasure | None:
        return await erase_session(self._transaction, session_id)

    async def commit(self) -> None:
        await self._transaction.commit()


@define
class SqlLedger:
    """``casenotes.ports.ledger.Ledger`` over two engines: transactions of ``reading`` must refuse to write.

    ``turn`` makes a context in which a unit of work holds its connection: a lock where the database has one
    writer, nothing where it has many. ``expected_revision`` names the schema that this version needs.
    """

    writing: AsyncEngine
    reading: AsyncEngine
    dialect: Dialect
    expected_revision: str
    turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    _closed: bool = field(default=False, init=False)

    @asynccontextmanager
    async def work(self) -> AsyncIterator[SqlUnitOfWork]:
        async with self.turn(), self._transaction(self.writing) as open_transaction:
            yield SqlUnitOfWork(
                open_transaction,
                SessionsWriter(open_transaction),
                RunsWriter(open_transaction),
                JournalWriter(open_transaction),
                CasesWriter(open_transaction),
                HistoryWriter(open_transaction),
                KeysWriter(open_transaction),
            )

    @asynccontextmanager
    async def view(self) -> AsyncIterator[SqlView]:
        async with self._transaction(self.reading) as open_transaction:
            yield SqlView(
                SessionsReader(open_transaction),
                RunsReader(open_transaction),
                JournalReader(open_transaction),
                CasesReader(open_transaction),
                HistoryReader(open_transaction),
            )

    async def check(self) -> None:
        expected = self.expected_revision
        async with self._transaction(self.reading) as open_transaction:
            known = await open_transaction.has_table("alembic_version")
            rows = await open_transaction.all(_REVISION) if known else ()
        stored = max((str(row["version_num"]) for row in rows), default=None)
        if stored is None:
            raise SchemaOutOfDate("the ledger's database has no tables yet: run casenotes migrate upgrade")
        if stored < expected:
            raise SchemaOutOfDate(
                f"the ledger's tables are of revision {stored}, {expected} is needed: run casenotes migrate upgrade"
            )
        if stored > expected:
            raise SchemaOutOfDate(
                f"the ledger's tables are of revision {stored}, newer than this version: upgrade casenotes"
            )

    async def close(self) -> None:
        self._closed = True
        await self.writing.dispose()
        await self.reading.dispose()

    def _transaction(self, engine: AsyncEngine) -> AbstractAsyncContextManager[Transaction]:
        if self._closed:
            raise LedgerUnavailable("the ledger is closed")
        return transaction(engine, self.dialect)
