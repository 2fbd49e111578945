from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copyfile

import pytest
from contract.databases import HistoryInSql

from casenotes.adapters.sqlite import open_ledger as open_sqlite_ledger
from casenotes.ports.contract import DurabilityContract, LedgerContract, OpenLedger, OutageContract
from casenotes.ports.ledger import Ledger


def opens(file: Path) -> OpenLedger:
    """Opens the ledger in this file, as often as it is asked to."""

    @asynccontextmanager
    async def open_file() -> AsyncIterator[Ledger]:
        ledger = open_sqlite_ledger(url_of(file))
        try:
            yield ledger
        finally:
            await ledger.close()

    return open_file


def url_of(file: Path) -> str:
    return f"sqlite+aiosqlite:///{file}"


class TestSqliteLedger(HistoryInSql, LedgerContract, DurabilityContract, OutageContract):
    @pytest.fixture
    def open_ledger(self, migrated_sqlite: Path, tmp_path: Path) -> OpenLedger:
        file = tmp_path / "ledger.db"
        copyfile(migrated_sqlite, file)
        self.url = url_of(file)
        return opens(file)

    @pytest.fixture
    def unreachable_ledger(self, tmp_path: Path) -> OpenLedger:
        return opens(tmp_path / "nowhere" / "ledger.db")

    @pytest.fixture
    def outdated_ledger(self, historical_sqlite: Path) -> OpenLedger:
        return opens(historical_sqlite)
