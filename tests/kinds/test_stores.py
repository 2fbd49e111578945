"""A conversation store that evicts and refuses: answers go on, and a conversation is whole or gone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from redis.asyncio import Redis
from support.own_redis import own_redis
from support.scripted import Scripted, playing
from support.service import Backend, Running

from casenotes.ports.agent import Answered

SESSIONS = 30
TURNS = 4
ROOM = 1_500_000
"""Bytes that the server may take beyond what it takes empty: much less than the conversations would."""


async def fill(here: Running, url: str, policy: str) -> list[bool]:
    """Ask in many sessions while there is little room; gives which answers were without their conversation."""
    async with Redis.from_url(url) as server:
        used = int((await server.info("memory"))["used_memory"])
        await server.config_set("maxmemory-policy", policy)
        await server.config_set("maxmemory", str(used + ROOM))
        degraded = []
        for turn in range(TURNS):
            for at in range(0, SESSIONS, 10):
                answers = await asyncio.gather(
                    *(here.client.ask(f"q-{n}-{turn}", f"s-{n}") for n in range(at, at + 10))
                )
                assert all(answer["success"] for answer in answers)
                degraded += [answer["contextDegraded"] for answer in answers]
        for key in await server.keys():
            assert await server.pttl(key) != -1, "what could never expire would never go"
        return degraded


async def remembered(here: Running) -> dict[int, list[str]]:
    return {
        number: [pair.question for pair in await here.service.context.recall(f"s-{number}")]
        for number in range(SESSIONS)
    }


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-random"])
def test_an_evicting_redis_loses_whole_conversations_and_no_answer(
    memory: Backend, tmp_path: Path, policy: str
) -> None:
    async def scenario(here: Running) -> None:
        degraded = await fill(here, redis.url, policy)
        assert not any(degraded)
        kept = await remembered(here)
        for number, questions in kept.items():
            turns = [f"q-{number}-{turn}" for turn in range(TURNS)]
            assert questions == turns[TURNS - len(questions) :], "the end of the conversation, without a gap"
        assert any(len(questions) < TURNS for questions in kept.values()), "there was room for all: no test"
        for number in (0, SESSIONS - 1):
            assert len((await here.client.runs(f"s-{number}")).data) == TURNS, "the record has lost nothing"

    with own_redis(tmp_path) as redis:
        memory.run(scenario, Scripted(playing(Answered("a" * 40_000))), context_url=redis.url)


def test_a_redis_that_is_full_and_evicts_nothing_degrades_and_fails_no_answer(
    memory: Backend, tmp_path: Path
) -> None:
    async def scenario(here: Running) -> None:
        degraded = await fill(here, redis.url, "noeviction")
        assert any(degraded) and not all(degraded)
        assert len((await here.client.runs("s-0")).data) == TURNS
        async with Redis.from_url(redis.url) as server:
            await server.config_set("maxmemory", "0")
        data = await here.client.ask("after", "s-0")
        assert data["success"] is True and data["contextDegraded"] is False

    with own_redis(tmp_path) as redis:
        memory.run(scenario, Scripted(playing(Answered("a" * 40_000))), context_url=redis.url)
