"""The servers that a benchmark runs against: started for it, as durable as those used in earnest, and gone after."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.slow_disk import SlowDisk

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.servers import Postgres, Redis, find_postgres, find_redis


class _OnSameDisk(Postgres):
    """A server whose flushes take as long as those of this process."""

    def _start(self) -> None:
        if (disk := SlowDisk.inherited()) is not None:
            # The server may run as another user, who cannot enter our folder.
            reachable = disk.copied(self.home)
            self._env = {**self._env, **reachable.environment}
        super()._start()


@contextmanager
def own_postgres(*settings: str) -> Iterator[str]:
    """The URL of a PostgreSQL server whose durability is the default: fsync on, every commit waits for the disk."""
    programs = find_postgres()
    if programs is None:
        raise SystemExit("no PostgreSQL server: make venv, or name its folder in CASENOTES_TEST_PG_BIN")
    server = _OnSameDisk(programs, settings)
    try:
        yield f"postgresql://postgres@/postgres?host={server.home}&port=5432"
    finally:
        server.stop()


@contextmanager
def own_valkey() -> Iterator[str]:
    """The URL of a Valkey server that keeps nothing, as is usual for a cache."""
    program = find_redis()
    if program is None:
        raise SystemExit("no Valkey server: make venv, or name its program in CASENOTES_TEST_REDIS_BIN")
    server = Redis(program)
    try:
        yield f"unix://{server.socket}"
    finally:
        server.stop()
