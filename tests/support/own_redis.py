"""A Redis server of a test's own, to be stopped, halted and started again at the same address."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field
from support.servers import Redis, find_redis


@define
class OwnRedis:
    """A server behind a link, which stays where it is when the server is replaced by a new and empty one."""

    link: Path
    _server: Redis | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"unix://{self.link}"

    def start(self) -> None:
        binary = find_redis()
        assert binary is not None
        self._server = Redis(binary)
        self.link.unlink(missing_ok=True)
        self.link.symlink_to(self._server.socket)

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def halt(self) -> None:
        """Keep the process, and all its connections, from doing anything."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, which: signal.Signals) -> None:
        assert self._server is not None
        os.kill(self._server.process.pid, which)


@contextmanager
def own_redis(folder: Path) -> Iterator[OwnRedis]:
    """A running server, gone after the block."""
    server = OwnRedis(folder / "redis")
    server.start()
    try:
        yield server
    finally:
        server.stop()
