"""What is soaked: two replicas of the real service over one PostgreSQL and one Redis, all of them our own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from attrs import define, field, frozen
from support.own_redis import OwnRedis, own_redis
from support.process import Process, service_process
from support.servers import Postgres, find_postgres

from casenotes.adapters.migration import upgrade


@define
class Replica:
    """``casenotes serve`` in a process that can be killed, and started again on the same port."""

    name: str
    folder: Path
    settings: Mapping[str, str]
    starts: int = field(default=0, init=False)
    _stack: ExitStack = field(factory=ExitStack, init=False)
    _process: Process | None = field(default=None, init=False)

    @property
    def process(self) -> Process:
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    @property
    def url(self) -> str:
        return self.process.url

    @property
    def pid(self) -> int | None:
        """``None`` while it is away."""
        running = self._process is not None and self.process.process.poll() is None
        return self.process.process.pid if running else None

    def start(self) -> None:
        port = 0 if self._process is None else urlsplit(self.url).port
        serve = ("casenotes", "serve", "--port", str(port))
        self._process = self._stack.enter_context(service_process(self.folder, serve, **self.settings))
        self.starts += 1

    def kill(self) -> None:
        self.process.kill()

    def close(self) -> None:
        self._stack.close()


@frozen
class Installation:
    """Everything that runs. ``lease`` is the replicas' ``CASENOTES_RUN_LEASE``, in seconds."""

    replicas: tuple[Replica, ...]
    postgres: Postgres
    redis: OwnRedis
    lease: float

    @property
    def ledger(self) -> str:
        return f"postgresql+asyncpg://postgres@/postgres?host={self.postgres.home}&port=5432"


@contextmanager
def installed(folder: Path, lease: float) -> Iterator[Installation]:
    """A running installation with an empty ledger, gone after the block. The database is as durable as by default."""
    programs = find_postgres()
    if programs is None:
        raise SystemExit("no PostgreSQL server: make venv")
    with ExitStack() as stack:
        postgres = Postgres(programs, settings=())
        stack.callback(postgres.stop)
        redis = stack.enter_context(own_redis(folder))
        replicas = tuple(Replica(name, folder / name, {}) for name in ("one", "two"))
        here = Installation(replicas, postgres, redis, lease)
        asyncio.run(upgrade(here.ledger))
        for replica in replicas:
            replica.folder.mkdir()
            replica.settings = {
                "database_url": here.ledger,
                "context_url": redis.url,
                "run_lease": str(lease),
            }
            stack.callback(replica.close)
            replica.start()
        yield here
