"""Databases that migrations made once, to be copied for each test, and the tally at the end of the run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from contract import tally

from casenotes.adapters.migration import upgrade


def pytest_configure(config: pytest.Config) -> None:
    tally.register(config)


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty SQLite ledger at the newest revision."""
    return _migrated(tmp_path_factory, "head")


@pytest.fixture(scope="session")
def historical_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database as the old system left it: of a revision that no ledger can work on."""
    return _migrated(tmp_path_factory, "0001")


def _migrated(tmp_path_factory: pytest.TempPathFactory, revision: str) -> Path:
    file = tmp_path_factory.mktemp("migrated") / f"{revision}.db"
    asyncio.run(upgrade(f"sqlite+aiosqlite:///{file}", revision))
    return file
