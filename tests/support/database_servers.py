"""The servers of a test run: PostgreSQL and Redis, started once, or those that the environment names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TypeVar

import pytest
from redis import Redis
from support.postgres import PostgresDatabases
from support.servers import Postgres, find_postgres, find_redis
from support.servers import Redis as RedisServer

T = TypeVar("T")

POSTGRES_URL = "CASENOTES_TEST_POSTGRES_URL"
REDIS_URL = "CASENOTES_TEST_REDIS_URL"

_started: list[Postgres | RedisServer] = []
_named: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    """Start what is missing, in the process that xdist's workers come from: they inherit where it is."""
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    if not os.environ.get(POSTGRES_URL):
        postgres = Postgres(_required(find_postgres(), "PostgreSQL"))
        _started.append(postgres)
        _name(POSTGRES_URL, f"postgresql+asyncpg://postgres@/postgres?host={postgres.home}&port=5432")
    if not os.environ.get(REDIS_URL):
        redis = RedisServer(_required(find_redis(), "Redis"))
        _started.append(redis)
        _name(REDIS_URL, f"unix://{redis.socket}")


def pytest_unconfigure() -> None:
    while _started:
        _started.pop().stop()
    while _named:
        os.environ.pop(_named.pop(), None)


def _required(found: T | None, what: str) -> T:
    if found is None:
        raise pytest.UsageError(f"no {what} server: make venv, or set {POSTGRES_URL} and {REDIS_URL}")
    return found


def _name(variable: str, url: str) -> None:
    os.environ[variable] = url
    _named.append(variable)


@pytest.fixture(scope="session")
def worker() -> str:
    """The name of this test process among those of the run."""
    return os.environ.get("PYTEST_XDIST_WORKER", "gw0")


@pytest.fixture(scope="session")
def postgres(worker: str) -> Iterator[PostgresDatabases]:
    """Databases of this worker's own."""
    databases = PostgresDatabases(os.environ[POSTGRES_URL], f"casenotes_{os.getpid()}_{worker}")
    yield databases
    databases.drop_templates()


@pytest.fixture(scope="session")
def redis_url(worker: str) -> str:
    """A numbered database of this worker's own, of the 16 that a server has."""
    url = os.environ[REDIS_URL]
    return f"{url}?db={int(worker.removeprefix('gw')) % 16}"


@pytest.fixture
def fresh_redis(redis_url: str) -> str:
    """A Redis database of this worker's own, empty."""
    with Redis.from_url(redis_url) as server:
        server.flushdb()
    return redis_url
