"""The wire to Redis fails at each command: answers go on and say so, and no pair is halved, doubled or another's."""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

import pytest
from faults.scene import Replica, play, replica, settled
from redis.asyncio import Redis
from support.fault_proxy import Blow, Fault, FaultProxy, Side, before_redis

from casenotes.adapters.context.redis import RedisContextStore
from casenotes.core.errors import ContextUnavailable
from casenotes.core.model import MessagePair
from casenotes.core.service.conducting import Limits
from casenotes.core.words import RunStatus

IN_TIME = 0.4
"""How long an answer of Redis may take here, in seconds."""

BLOWS = [
    *(Blow(Fault.CUT, side) for side in Side),
    *(Blow(Fault.HALT, side) for side in Side),
    Blow(Fault.DELAY, Side.AFTER, 0.05),
]
OF_A_RUN = ["LRANGE", "EVAL"]


def replica_through(proxy: FaultProxy, ledger_url: str) -> AbstractAsyncContextManager[Replica]:
    """A replica with its conversations behind the proxy."""
    context = RedisContextStore(proxy.url, timeout=IN_TIME)
    return replica(ledger_url, context=context, limits=Limits(context_timeout=timedelta(seconds=2 * IN_TIME)))


async def kept_in(url: str, session_id: str) -> list[str]:
    """The questions that Redis itself holds, past the proxy; they are whole, and held for a limited time."""
    async with Redis.from_url(url, decode_responses=True) as server:
        key = f"casenotes:{{{session_id}}}:pairs"
        pairs = [json.loads(text) for text in await server.lrange(key, 0, -1)]
        assert not pairs or await server.pttl(key) > 0
    assert all(question in answer for question, answer in pairs)
    return [question for question, _ in pairs]


@pytest.mark.parametrize("blow", BLOWS, ids=str)
def test_wire_that_fails_at_any_command_of_a_run_degrades_it_and_loses_no_answer(
    blow: Blow, fresh_redis: str, sqlite_url: str
) -> None:
    async def scenario() -> None:
        async with before_redis(fresh_redis) as proxy, replica_through(proxy, sqlite_url) as here:
            await here.ask("counted", "one")
            assert [name for name in proxy.seen if name in OF_A_RUN] == OF_A_RUN
            for command in OF_A_RUN:
                session_id = f"s-{command}"
                assert not (await here.ask(session_id, "one")).context_degraded
                proxy.strike(blow, containing=command)
                struck = await here.ask(session_id, "two")
                assert struck.status is RunStatus.SUCCESS
                assert struck.context_degraded is (blow.fault is not Fault.DELAY)
                assert proxy.struck[-1] == command
                proxy.heal()
                assert not (await here.ask(session_id, "three")).context_degraded
                kept = await kept_in(fresh_redis, session_id)
                # An append that nobody heard of may have been done; it is not done twice.
                assert kept in (["one", "two", "three"], ["one", "three"]), kept
                if not struck.context_degraded:
                    assert "two" in kept
            assert await kept_in(fresh_redis, "counted") == ["one"], "another's conversation"
        await settled(sqlite_url)

    play(scenario)


@pytest.mark.parametrize("blow", BLOWS, ids=str)
def test_clearing_on_a_wire_that_fails_is_refused_or_done(
    blow: Blow, fresh_redis: str, sqlite_url: str
) -> None:
    async def scenario() -> None:
        async with before_redis(fresh_redis) as proxy, replica_through(proxy, sqlite_url) as here:
            await here.ask("s", "one")
            await here.ask("other", "one")
            proxy.strike(blow, containing="DEL")
            clear = here.service.conversations.clear
            if blow.fault is Fault.DELAY:
                await clear("s")
            else:
                with pytest.raises(ContextUnavailable):
                    await clear("s")
            proxy.heal()
            await clear("s")
            assert await kept_in(fresh_redis, "s") == []
            assert await kept_in(fresh_redis, "other") == ["one"]
            assert len(await here.stored("s")) == 1, "its history stays"
        await settled(sqlite_url)

    play(scenario)


@pytest.mark.parametrize("blow", BLOWS, ids=str)
def test_answer_that_comes_late_or_never_is_not_taken_for_anothers(
    blow: Blow, fresh_redis: str, sqlite_url: str
) -> None:
    """Many recall at once over few connections while one of them meets the blow: each gets its own, or nothing."""

    async def scenario() -> None:
        sessions = [f"s-{number}" for number in range(12)]
        async with before_redis(fresh_redis) as proxy, replica_through(proxy, sqlite_url) as here:

            async def recalled(session_id: str) -> list[str] | None:
                try:
                    return [pair.question for pair in await here.service.context.recall(session_id)]
                except ContextUnavailable:
                    return None

            for session_id in sessions:
                await here.service.context.append(session_id, MessagePair(session_id, "a"))
            for number in (0, 5, 11):
                proxy.strike(blow, nth=number, containing="LRANGE")
                found = await asyncio.gather(*map(recalled, sessions))
                proxy.heal()
                at_once = await asyncio.gather(*map(recalled, sessions))  # may meet what was just cut
                again = await asyncio.gather(*map(recalled, sessions))
                for session_id, *got in zip(sessions, found, at_once, again, strict=True):
                    assert got[0] in (None, [session_id])
                    assert got[1] in (None, [session_id])
                    assert got[2] == [session_id]
        await settled(sqlite_url)

    play(scenario)
