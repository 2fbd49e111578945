"""Ledgers to be hurt."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.postgres import PostgresDatabases

from casenotes.adapters.migration import upgrade


@pytest.fixture
def postgres_url(postgres: PostgresDatabases) -> Iterator[str]:
    """An empty ledger in PostgreSQL."""
    with postgres.copy("head") as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """An empty ledger in a file."""
    url = f"sqlite+aiosqlite:///{tmp_path / 'casenotes.db'}"
    asyncio.run(upgrade(url))
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """An empty ledger in each database."""
    found = request.getfixturevalue(f"{request.param}_url")
    assert isinstance(found, str)
    return found
