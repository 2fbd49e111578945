"""What replicas share: a ledger in PostgreSQL, and conversations in Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from replicas.stores import Stores
from support.postgres import PostgresDatabases


@pytest.fixture
def stores(postgres: PostgresDatabases, fresh_redis: str) -> Iterator[Stores]:
    """Empty stores at the newest revision."""
    with postgres.copy("head") as url:
        yield Stores(url, fresh_redis)
