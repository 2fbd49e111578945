"""A ledger file that migrations made once, copied for each test."""

from __future__ import annotations

import asyncio
from pathlib import Path
from shutil import copyfile

import pytest

from casenotes.adapters.migration import upgrade


@pytest.fixture(scope="session")
def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("migrated") / "ledger.db"
    asyncio.run(upgrade(f"sqlite:///{file}"))
    return file


@pytest.fixture
def ledger_path(empty_ledger: Path, tmp_path: Path) -> Path:
    """An empty ledger file at the newest revision, in a path with characters that mean something in a URI."""
    file = tmp_path / "case notes #1.db"
    copyfile(empty_ledger, file)
    return file
