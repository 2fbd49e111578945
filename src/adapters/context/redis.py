"""The conversation store in Redis, or what speaks its protocol: shared by all replicas."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

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
"""Of one call, whatever it waits for: a free connection, its making, the answer."""

CONNECTIONS: Final = 32

_APPEND: Final = """
redis.call("RPUSH", KEYS[1], ARGV[1])
redis.call("LTRIM", KEYS[1], ARGV[2], -1)
redis.call("PEXPIRE", KEYS[1], ARGV[3])
"""
"""The key; a pair, the first place that is kept, milliseconds. A script is done as a whole, and has one answer."""


class _Pool(BlockingConnectionPool):
    """Finds out, before a connection is used, that the server has closed it, and opens it anew."""

    async def ensure_connection(self, connection: Any) -> None:
        # The driver sees by itself that a connection was closed in order, and not that it was reset. Its reader is
        # none of its promises: without one, a call on such a connection fails, and the next finds another.
        reader = getattr(connection, "_reader", None)
        if connection.is_connected and reader is not None and reader.exception() is not None:
            await connection.disconnect(nowait=True)
        await super().ensure_connection(connection)


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
        self._timeout = timeout
        try:
            # No retry: an append whose answer was lost may have been done, and would be done twice.
            # No time-outs of the driver's for reading and writing: it would start a task for each write and a timer for
            # each reply.
            pool = _Pool.from_url(
                url,
                max_connections=CONNECTIONS,
                timeout=None,
                decode_responses=True,
                socket_timeout=None,
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
        kept = await self._ask("LRANGE", _key(session_id), -self._retention.window, -1)
        try:
            return [MessagePair(*json.loads(text)) for text in kept]
        except (ValueError, TypeError) as error:
            raise _unusable(error) from None

    async def append(self, session_id: str, pair: MessagePair) -> None:
        text = json.dumps([pair.question, pair.answer], ensure_ascii=False)
        ttl = max(1, round(self._retention.ttl * 1000))
        await self._ask("EVAL", _APPEND, 1, _key(session_id), text, -self._retention.window, ttl)

    async def clear(self, session_id: str) -> None:
        await self._ask("DEL", _key(session_id))

    async def ping(self) -> None:
        await self._ask("PING")

    async def close(self) -> None:
        self._closed = True
        await self._redis.aclose()

    async def _ask(self, *command: str | int) -> Any:
        """The server's answer to one command. Raises ``ContextUnavailable``, also when it does not come in time.

        The driver does not use a connection again in whose command it was interrupted.
        """
        if self._closed:
            raise ContextUnavailable("the conversation store is closed")
        try:
            async with asyncio.timeout(self._timeout):
                return await self._redis.execute_command(*command)  # type: ignore[no-untyped-call]
        except (RedisError, OSError, ValueError, TypeError) as error:
            raise _unusable(error) from None


def _unusable(error: Exception) -> ContextUnavailable:
    return ContextUnavailable(f"the conversation store cannot be used ({type(error).__name__})")


def _key(session_id: str) -> str:
    return f"casenotes:{{{session_id}}}:pairs"
