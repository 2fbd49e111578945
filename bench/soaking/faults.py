"""What goes wrong during a soak, at which point of its count of requests, and what was wrong when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from aiohttp import ClientError, ClientSession, ClientTimeout
from attrs import define, field

from bench.soaking.installation import Installation

KILL_AT, POSTGRES_AT, REDIS_AT = 0.10, 0.45, 0.60
"""Shares of all requests. The kill is early, so that the memory of the process that follows it can be judged."""

AWAY_FOR = 0.05
"""The share of all requests that is made while a replica, or Redis, is away."""

POSTGRES_AWAY_SECONDS = 1.0
MOST_SECONDS_AWAY = 30.0
READY_SECONDS = 60.0

NOTHING = "-"


@define
class Faulty:
    """When what was wrong, by the monotonic clock."""

    _times: list[tuple[str, float, float | None]] = field(factory=list, init=False)

    @property
    def names(self) -> list[str]:
        """Of all faults that began."""
        return list(dict.fromkeys(name for name, _, _ in self._times))

    def during(self, began: float, ended: float) -> str:
        """The faults that an attempt met, or ``-``."""
        met = [name for name, start, end in self._times if start <= ended and (end is None or began <= end)]
        return " + ".join(dict.fromkeys(met)) or NOTHING

    @contextmanager
    def fault(self, name: str, aftermath: float) -> Iterator[None]:
        """A fault that lasts for the block; its effects for ``aftermath`` seconds more."""
        place = len(self._times)
        start = time.monotonic()
        self._times.append((name, start, None))
        try:
            yield
        finally:
            self._times[place] = (name, start, time.monotonic() + aftermath)


@define
class Progress:
    """How many requests of ``total`` were begun. Traffic waits where a fault is due and the one before is not over."""

    total: int
    begun: int = field(default=0, init=False)
    _changed: asyncio.Condition = field(factory=asyncio.Condition, init=False)
    _open_to: float = field(default=0.0, init=False)

    async def take(self) -> bool:
        """Begin one more request; false when all were begun."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.begun >= self.total or self.begun < self._open_to)
            if self.begun >= self.total:
                self._changed.notify_all()
                return False
            self.begun += 1
            self._changed.notify_all()
            return True

    async def let_go_on(self, share: float) -> None:
        """Let traffic pass up to this share of all requests."""
        async with self._changed:
            self._open_to = max(self._open_to, share * self.total)
            self._changed.notify_all()

    async def let_go_on_to(self, share: float) -> None:
        """The same, and wait until it is there."""
        await self.let_go_on(share)
        async with self._changed:
            await self._changed.wait_for(lambda: self.begun >= min(share, 1) * self.total - 1)


async def go_wrong(here: Installation, progress: Progress, faulty: Faulty) -> None:
    """Kill a replica and start it again; restart PostgreSQL; take Redis away, and put an empty one in its place."""
    doomed = here.replicas[0]
    # Those who wait for runs of a dead process, or for their answers' keys, learn their end within two leases.
    aftermath = 2 * here.lease + 1
    await progress.let_go_on_to(KILL_AT)
    with faulty.fault("replica killed", aftermath):
        await asyncio.to_thread(doomed.kill)
        await _away(progress, KILL_AT)
        await asyncio.to_thread(doomed.start)
        await ready(here)
    await progress.let_go_on_to(POSTGRES_AT)
    with faulty.fault("PostgreSQL restarted", aftermath):
        shutting = asyncio.create_task(asyncio.to_thread(here.postgres.shut_down))
        going_on = asyncio.create_task(progress.let_go_on_to(REDIS_AT))
        await shutting
        await asyncio.sleep(POSTGRES_AWAY_SECONDS)
        await asyncio.to_thread(here.postgres.start_again)
        await ready(here)
    await going_on
    with faulty.fault("Redis replaced", aftermath):
        await asyncio.to_thread(here.redis.stop)
        await _away(progress, REDIS_AT)
        await asyncio.to_thread(here.redis.start)
        await ready(here)
    await progress.let_go_on(1)


async def _away(progress: Progress, since: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(progress.let_go_on_to(since + AWAY_FOR), MOST_SECONDS_AWAY)


async def ready(here: Installation) -> None:
    """Wait until every replica says that it has all it needs."""
    wanted = {"ledger": "ready", "context": "ready"}
    async with asyncio.timeout(READY_SECONDS), ClientSession(timeout=ClientTimeout(total=5)) as http:
        for replica in here.replicas:
            while True:
                if await _state(http, replica.url) == wanted:
                    break
                await asyncio.sleep(0.05)


async def _state(http: ClientSession, url: str) -> object:
    try:
        async with http.get(f"{url}/readyz") as response:
            return (await response.json())["data"]
    except (ClientError, TimeoutError):
        return None
