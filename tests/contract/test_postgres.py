from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from contract.databases import HistoryInSql
from support.postgres import PostgresDatabases

from casenotes.adapters.postgres import open_ledger as open_postgres_ledger
from casenotes.ports.contract import DurabilityContract, LedgerContract, OpenLedger, OutageContract
from casenotes.ports.ledger import Ledger


def opens(url: str) -> OpenLedger:
    """Opens the ledger in this database, as often as it is asked to."""

    @asynccontextmanager
    async def open_database() -> AsyncIterator[Ledger]:
        ledger = open_postgres_ledger(url)
        try:
            yield ledger
        finally:
            await ledger.close()

    return open_database


class TestPostgresLedger(HistoryInSql, LedgerContract, DurabilityContract, OutageContract):
    @pytest.fixture
    def open_ledger(self, postgres: PostgresDatabases) -> Iterator[OpenLedger]:
        with postgres.copy("head") as url:
            self.url = url
            yield opens(url)

    @pytest.fixture
    def unreachable_ledger(self) -> OpenLedger:
        return opens("postgresql+asyncpg://nobody@/nowhere?host=/nonexistent&port=5432")

    @pytest.fixture
    def outdated_ledger(self, postgres: PostgresDatabases) -> Iterator[OpenLedger]:
        with postgres.copy("0001") as url:
            yield opens(url)
