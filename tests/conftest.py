"""What all tests share: the backends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from contract import tally
from support.service import Backend, memory_backend, postgres_backend, sqlite_backend

pytest_plugins = ["support.database_servers"]


def pytest_configure(config: pytest.Config) -> None:
    """Tally the contract, and send logs to the standard library, where pytest shows them for a test that failed."""
    tally.register(config)
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """Each backend in turn."""
    match request.param:
        case "memory":
            yield memory_backend()
        case "sqlite":
            yield sqlite_backend(tmp_path)
        case _:
            context = request.getfixturevalue("fresh_redis")
            with request.getfixturevalue("postgres").copy("head") as url:
                yield postgres_backend(url, context)


@pytest.fixture
def sqlite(tmp_path: Path) -> Backend:
    """The backend whose database can be looked into."""
    return sqlite_backend(tmp_path)


@pytest.fixture
def memory() -> Backend:
    """The backend for what has nothing to do with a database."""
    return memory_backend()
