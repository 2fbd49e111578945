from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis

from casenotes.adapters.context.redis import RedisContextStore
from casenotes.ports.context import ContextStore
from casenotes.ports.contract import (
    ContextContract,
    ContextOutageContract,
    DurableContextContract,
    HeldClock,
    OpenContext,
)


def opens(url: str) -> OpenContext:
    """Opens the store in this database, as often as it is asked to."""

    @asynccontextmanager
    async def open_database(
        *, window: int = 6, ttl: int = 100, clock: HeldClock | None = None
    ) -> AsyncIterator[ContextStore]:
        store = RedisContextStore(url, window=window, ttl=ttl)
        try:
            yield store
        finally:
            await store.close()

    return open_database


class TestRedisContext(ContextContract, DurableContextContract, ContextOutageContract):
    url: str

    @pytest.fixture
    def open_context(self, fresh_redis: str) -> OpenContext:
        self.url = fresh_redis
        return opens(fresh_redis)

    @pytest.fixture
    def unreachable_context(self) -> OpenContext:
        return opens("redis://:hunter2@127.0.0.1:1/0")

    async def pass_time(self, store: ContextStore, clock: HeldClock, seconds: float) -> None:
        """The server keeps its own time: what it holds is made that much older."""
        async with Redis.from_url(self.url) as server:
            async for key in server.scan_iter():
                left = await server.pttl(key) - round(seconds * 1000)
                await (server.pexpire(key, left) if left > 0 else server.delete(key))
