"""The SQL ledger: one for every database that SQLAlchemy can speak to and ``dialect`` has an entry for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Protocol, TypeVar

import sqlalchemy as sa
from attrs import define, field, frozen

from casenotes.adapters.sql.cases import CasesReader, CasesWriter
from casenotes.adapters.sql.connections import Connections
from casenotes.adapters.sql.dialect import Dialect
from casenotes.adapters.sql.erase import erase_session
from casenotes.adapters.sql.history import HistoryReader, HistoryWriter
from casenotes.adapters.sql.journal import JournalReader, JournalWriter
from casenotes.adapters.sql.keys import KeysWriter
from casenotes.adapters.sql.runs import RunsReader, RunsWriter, has_run
from casenotes.adapters.sql.sessions import SessionsReader, SessionsWriter
from casenotes.adapters.sql.trace import read_trace
from casenotes.adapters.sql.transaction import Transaction, transaction
from casenotes.core.ending import Decide
from casenotes.core.errors import LedgerUnavailable, SchemaOutOfDate
from casenotes.core.model import AgentStep, ChatSession, DiagnosisRun, ToolInvocation
from casenotes.core.views import Erasure, StoredTrace
from casenotes.ports.ledger import Body

T = TypeVar("T")

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

    async def erase(
        self, session_id: str, *, at: datetime, idle_since: datetime | None = None
    ) -> Erasure | None:
        return await erase_session(self._transaction, session_id, at, idle_since)

    async def commit(self) -> None:
        await self._transaction.commit()


def unit_of_work(opened: Transaction) -> SqlUnitOfWork:
    """The unit of work on this transaction."""
    return SqlUnitOfWork(
        opened,
        SessionsWriter(opened),
        RunsWriter(opened),
        JournalWriter(opened),
        CasesWriter(opened),
        HistoryWriter(opened),
        KeysWriter(opened),
    )


class Commits(Protocol):
    """How a database makes what arrives together durable together."""

    async def transact(self, body: Body[T]) -> T:
        """``casenotes.ports.ledger.Ledger.transact``."""
        ...

    async def start(self, session: ChatSession, run: DiagnosisRun) -> DiagnosisRun:
        """``casenotes.ports.ledger.Ledger.start``."""
        ...

    async def record(self, entry: AgentStep | ToolInvocation) -> None:
        """``casenotes.ports.ledger.Ledger.record``."""
        ...

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        """``casenotes.ports.ledger.Ledger.end``."""
        ...

    async def done(self) -> None:
        """Return when nothing is being written."""
        ...


@define
class SqlLedger:
    """``casenotes.ports.ledger.Ledger`` over connections of two kinds: those of ``reading`` must refuse to write.

    ``expected_revision`` names the schema that this version needs.
    """

    writing: Connections
    reading: Connections
    commits: Commits
    dialect: Dialect
    expected_revision: str
    _closed: bool = field(default=False, init=False)

    @asynccontextmanager
    async def work(self) -> AsyncIterator[SqlUnitOfWork]:
        async with self._transaction(self.writing) as open_transaction:
            yield unit_of_work(open_transaction)

    async def transact(self, body: Body[T]) -> T:
        self._refuse_when_closed()
        return await self.commits.transact(body)

    async def start(self, session: ChatSession, run: DiagnosisRun) -> DiagnosisRun:
        self._refuse_when_closed()
        return await self.commits.start(session, run)

    async def record(self, entry: AgentStep | ToolInvocation) -> None:
        self._refuse_when_closed()
        await self.commits.record(entry)

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        self._refuse_when_closed()
        return await self.commits.end(session_id, run_id, decide)

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

    async def trace(self, session_id: str, run_id: str | None = None) -> StoredTrace:
        async with self._transaction(self.reading) as open_transaction:
            return await read_trace(open_transaction, session_id, run_id)

    async def has_run(self, session_id: str, run_id: str) -> bool:
        async with self._transaction(self.reading) as open_transaction:
            return await has_run(open_transaction, session_id, run_id)

    async def check(self) -> None:
        expected = self.expected_revision
        async with self._transaction(self.reading) as open_transaction:
            found = await open_transaction.one(self.dialect.has_revision)
            rows = await open_transaction.all(_REVISION) if found is not None and found["known"] else ()
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
        await self.commits.done()
        await self.writing.close()
        await self.reading.close()

    def _transaction(self, connections: Connections) -> AbstractAsyncContextManager[Transaction]:
        self._refuse_when_closed()
        return transaction(connections, self.dialect)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise LedgerUnavailable("the ledger is closed")
