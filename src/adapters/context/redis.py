"""The conversation store in Redis, or what speaks its protocol: shared by all replicas."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from casenotes.adapters.context.retention import (
    DEFAULT_TTL_SECONDS,
    DEFAULT_WINDOW,
    Retention,
    now_in_utc,
)
from casenotes.core.errors import ContextUnavailable, InvalidSettings
from casenotes.core.model import MessagePair

TIMEOUT_SECONDS: Final = 1.0
"""Of a connection, of the wait for a free one, and of each answer."""

CONNECTIONS: Final = 32


class RedisContextStore:
    """``casenotes.ports.context.ContextStore``. Time passes by the server's clock.

    A conversation is one list, ``casenotes:{<session id>}:pairs``: the braces make the session id the hash tag, so
    that a cluster keeps whatever belongs to a session in one slot. Being one key, it lives and dies as a whole.
    """

    def __init__(
        self,
        url: str,
        window: int = DEFAULT_WINDOW,
        ttl: float = DEFAULT_TTL_SECONDS,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        """Connects at the first use. Raises ``InvalidSettings`` for a URL that cannot be read."""
        self._retention = Retention(window, ttl, now_in_utc)
        try:
            # No retry: an append whose answer was lost may have been done, and would be done twice. A pooled
            # connection that the server has closed is found out, and opened anew, before it is used.
            pool = BlockingConnectionPool.from_url(
                url,
                max_connections=CONNECTIONS,
                timeout=timeout,
                decode_responses=True,
                socket_timeout=timeout,
                socket_connect_timeout=timeout,
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError:
            raise InvalidSettings(
                "the conversation store's URL cannot be read: redis://host:6379/0 is expected"
            ) from None
        self._redis = Redis.from_pool(pool)
        self._closed = False

    async def recall(self, session_id: str) -> Sequence[MessagePair]:
        async with self._translated():
            kept = await self._redis.lrange(_key(session_id), -self._retention.window, -1)
            return [MessagePair(*json.loads(text)) for text in kept]

    async def append(self, session_id: str, pair: MessagePair) -> None:
        key, text = _key(session_id), json.dumps([pair.question, pair.answer], ensure_ascii=False)
        async with self._translated(), self._redis.pipeline(transaction=True) as work:
            work.rpush(key, text)
            work.ltrim(key, -self._retention.window, -1)
            work.pexpire(key, max(1, round(self._retention.ttl * 1000)))
            await work.execute()

    async def clear(self, session_id: str) -> None:
        async with self._translated():
            await self._redis.delete(_key(session_id))

    async def ping(self) -> None:
        async with self._translated():
            await self._redis.ping()

    async def close(self) -> None:
        self._closed = True
        await self._redis.aclose()

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        if self._closed:
            raise ContextUnavailable("the conversation store is closed")
        try:
            yield
        except (RedisError, OSError, ValueError, TypeError) as error:
            raise ContextUnavailable(
                f"the conversation store cannot be used ({type(error).__name__})"
            ) from None


def _key(session_id: str) -> str:
    return f"casenotes:{{{session_id}}}:pairs"
