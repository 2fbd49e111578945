"""What the Redis adapter does that the contract cannot see: its keys, and callers that are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from redis.asyncio import Redis
from support.fault_proxy import before_redis

from casenotes.adapters.context.redis import TIMEOUT_SECONDS, RedisContextStore
from casenotes.core.errors import ContextUnavailable, InvalidSettings
from casenotes.core.model import MessagePair
from casenotes.core.service.conducting import Limits


def on_redis(url: str, scene: Callable[[RedisContextStore, Redis], Awaitable[None]]) -> None:
    """Play a scene on a store, with a second way into its database."""

    async def played() -> None:
        store = RedisContextStore(url, ttl=100)
        try:
            async with asyncio.timeout(60), Redis.from_url(url, decode_responses=True) as server:
                await scene(store, server)
        finally:
            await store.close()

    asyncio.run(played())


def test_conversation_is_one_key_that_carries_the_session_id_as_hash_tag_and_expires(
    fresh_redis: str,
) -> None:
    async def scene(store: RedisContextStore, server: Redis) -> None:
        await store.append("a:b", MessagePair("q", "ä"))
        assert await server.keys() == ["casenotes:{a:b}:pairs"]
        assert await server.lrange("casenotes:{a:b}:pairs", 0, -1) == ['["q", "ä"]']
        assert 99_000 < await server.pttl("casenotes:{a:b}:pairs") <= 100_000
        await server.pexpire("casenotes:{a:b}:pairs", 5000)
        await store.append("a:b", MessagePair("q2", "a2"))
        assert await server.pttl("casenotes:{a:b}:pairs") > 99_000

    on_redis(fresh_redis, scene)


def test_evicted_conversation_begins_anew(fresh_redis: str) -> None:
    async def scene(store: RedisContextStore, server: Redis) -> None:
        await store.append("s", MessagePair("q", "a"))
        await server.delete("casenotes:{s}:pairs")
        assert await store.recall("s") == []
        await store.append("s", MessagePair("q2", "a2"))
        assert await store.recall("s") == [MessagePair("q2", "a2")]

    on_redis(fresh_redis, scene)


def test_key_that_somebody_else_wrote_is_unavailable_and_no_fault(fresh_redis: str) -> None:
    async def scene(store: RedisContextStore, server: Redis) -> None:
        await server.set("casenotes:{text}:pairs", "a secret")
        await server.rpush("casenotes:{list}:pairs", "no json, a secret")
        for session_id in ("text", "list"):
            with pytest.raises(ContextUnavailable) as told:
                await store.recall(session_id)
            assert "secret" not in str(told.value)
        assert await store.recall("other") == []

    on_redis(fresh_redis, scene)


def test_key_that_somebody_else_wrote_is_left_as_it_is(fresh_redis: str) -> None:
    async def scene(store: RedisContextStore, server: Redis) -> None:
        await server.set("casenotes:{text}:pairs", "theirs")
        with pytest.raises(ContextUnavailable):
            await store.append("text", MessagePair("q", "a"))
        assert await server.get("casenotes:{text}:pairs") == "theirs"
        assert await server.pttl("casenotes:{text}:pairs") == -1, "it does not expire"

    on_redis(fresh_redis, scene)


def test_connections_that_were_reset_while_nobody_used_them_cost_no_conversation(fresh_redis: str) -> None:
    names = [f"s-{number}" for number in range(12)]

    async def played() -> None:
        async with asyncio.timeout(60), before_redis(fresh_redis) as proxy:
            store = RedisContextStore(proxy.url)
            await asyncio.gather(*(store.append(name, MessagePair(name, "a")) for name in names))
            proxy.cut()
            await asyncio.sleep(0.05)  # until the other end has heard of it
            found = await asyncio.gather(*map(store.recall, names))
            assert [pair.question for pairs in found for pair in pairs] == names
            await store.close()

    asyncio.run(played())


@pytest.mark.parametrize("seed", range(5))
def test_cancelled_commands_cross_no_replies_and_leak_no_connection(fresh_redis: str, seed: int) -> None:
    async def scene(store: RedisContextStore, server: Redis) -> None:
        names, chance = [f"s-{number}" for number in range(8)], Random(seed)

        async def use(name: str) -> None:
            await store.append(name, MessagePair(name, "x" * chance.randrange(20_000)))
            for pair in await store.recall(name):
                assert pair.question == name

        for _ in range(10):
            tasks = [asyncio.create_task(use(name)) for name in names * 2]
            await asyncio.sleep(chance.random() / 200)
            for task in chance.sample(tasks, 8):
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(end) for end in ends} <= {type(None), asyncio.CancelledError}
        for name in names:
            assert {pair.question for pair in await store.recall(name)} <= {name}
            kept = await server.lrange(f"casenotes:{{{name}}}:pairs", 0, -1)
            assert len(kept) <= 6
            assert not kept or await server.pttl(f"casenotes:{{{name}}}:pairs") > 0
        await asyncio.gather(*(store.recall(name) for name in names * 20))

    on_redis(fresh_redis, scene)


def test_many_at_once_wait_for_one_another(fresh_redis: str) -> None:
    async def scene(store: RedisContextStore, server: Redis) -> None:
        await asyncio.gather(*(store.append("s", MessagePair("q", str(number))) for number in range(300)))
        assert len(await store.recall("s")) == 6

    on_redis(fresh_redis, scene)


def test_waits_of_one_call_fit_into_what_a_run_grants_it() -> None:
    assert Limits().context_timeout.total_seconds() >= 2 * TIMEOUT_SECONDS


@pytest.mark.parametrize("url", ["secret", "redis://host:secret/0", "http://secret"])
def test_url_that_names_no_server_is_refused(url: str) -> None:
    with pytest.raises(InvalidSettings, match="redis://") as refused:
        RedisContextStore(url)
    assert "secret" not in str(refused.value)
