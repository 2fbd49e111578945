"""The service while its Redis is away, silent or new: answers go on, and say what they were made without."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import define, evolve, field
from support.own_redis import OwnRedis, own_redis
from support.scripted import Gate, Scripted, usual
from support.service import Backend, Running, memory_backend

from casenotes.adapters.context.redis import CONNECTIONS, RedisContextStore
from casenotes.core.errors import ContextUnavailable
from casenotes.core.model import MessagePair
from casenotes.core.service.bounded_context import BoundedContext
from casenotes.core.service.conducting import Limits
from casenotes.core.service.stream import Order
from casenotes.core.words import AgentFlow


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[OwnRedis]:
    with own_redis(tmp_path) as server:
        yield server


def over(redis: OwnRedis) -> Backend:
    """A memory ledger, and conversations in this server."""
    memory = memory_backend()
    return Backend("redis", evolve(memory.settings, context_url=redis.url))


def recalled(asked: Scripted) -> list[str]:
    """The questions before the one that was asked last, as the diagnostician got them."""
    return [pair.question for pair in asked.enquiries[-1].conversation]


async def remembered(here: Running, question: str) -> None:
    """A question is answered with all that there was to answer it with."""
    answer = await here.client.ask(question, "s-1")
    assert answer["success"] and not answer["contextDegraded"]


async def answered_without_context(here: Running, question: str) -> None:
    """A question is answered all the same, and answer and run say that the conversation was missing."""
    answer = await here.client.ask(question, "s-1")
    assert answer["success"] and answer["contextDegraded"] and not answer["degraded"]
    trace = await here.service.reading.trace("s-1", answer["runId"])
    assert trace.run is not None and trace.run.context_degraded
    assert (await here.client.trace("s-1", answer["runId"])).status == 200
    assert len((await here.client.runs("s-1")).data) > 0
    assert (await here.client.rate("s-1", runId=answer["runId"])).status == 200
    ready = await here.client.get("/readyz")
    assert (ready.status, ready.data["context"]) == (200, "unavailable")


def test_server_that_is_away_and_comes_back_needs_no_restart_of_ours(redis: OwnRedis) -> None:
    asked = Scripted(usual)

    async def scenario(here: Running) -> None:
        await remembered(here, "one")
        await remembered(here, "two")
        assert recalled(asked) == ["one"]
        redis.stop()
        await answered_without_context(here, "three")
        assert recalled(asked) == []
        redis.start()
        await remembered(here, "four")
        await remembered(here, "five")
        assert recalled(asked) == ["four"]
        assert (await here.client.get("/readyz")).data["context"] == "ready"
        assert (await here.client.get("/api/chat/session/s-1")).data["messagePairCount"] == 5

    over(redis).run(scenario, asked)


def test_server_that_is_silent_keeps_nobody_waiting_for_long(redis: OwnRedis) -> None:
    asked = Scripted(usual)

    async def scenario(here: Running) -> None:
        await remembered(here, "one")
        redis.halt()
        try:
            await answered_without_context(here, "two")
            await asyncio.gather(*(here.client.ask(f"beside {n}", f"t-{n}") for n in range(10)))
        finally:
            redis.go_on()
        await remembered(here, "three")
        assert recalled(asked)[0] == "one"

    over(redis).run(scenario, asked)


def test_store_that_nobody_else_bounds_gives_a_silent_server_up_by_itself(redis: OwnRedis) -> None:
    pair = MessagePair("one", "a")

    async def scene() -> None:
        store = RedisContextStore(redis.url, timeout=0.2)
        async with asyncio.timeout(60):
            await store.append("s-1", pair)
            redis.halt()
            try:
                calls = [store.append("s-1", pair), store.clear("s-2"), store.ping()]
                more = [store.recall("s-1") for _ in range(CONNECTIONS)]  # some wait for a free connection
                ends = await asyncio.gather(*calls, *more, return_exceptions=True)
            finally:
                redis.go_on()
            assert {type(end) for end in ends} == {ContextUnavailable}
            assert (await store.recall("s-1"))[0] == pair
            await store.close()

    asyncio.run(scene())


def test_server_that_goes_away_in_the_middle_of_a_run_degrades_it(redis: OwnRedis) -> None:
    gate = Gate()

    async def scenario(here: Running) -> None:
        asking = asyncio.create_task(here.client.ask("one", "s-1"))
        await gate.reached.wait()
        redis.stop()
        gate.opened.set()
        answer = await asking
        assert answer["success"] and answer["contextDegraded"]

    over(redis).run(scenario, Scripted(gate))


def test_clearing_a_conversation_that_cannot_be_reached_is_refused(redis: OwnRedis) -> None:
    async def scenario(here: Running) -> None:
        await remembered(here, "one")
        redis.stop()
        for reply in (
            await here.client.post("/api/chat/clear", {"sessionId": "s-1"}),
            await here.client.delete("/api/chat/session/s-1"),
        ):
            assert reply.status == 503 and int(reply.headers["Retry-After"]) > 0
        assert len((await here.client.runs("s-1")).data) == 1, "nothing was erased"

    over(redis).run(scenario)


@define
class NeverAnswers:
    """A conversation store that takes a call and says nothing."""

    calls: list[str] = field(factory=list)

    async def recall(self, session_id: str) -> Sequence[MessagePair]:
        return await self._wait("recall")

    async def append(self, session_id: str, pair: MessagePair) -> None:
        await self._wait("append")

    async def clear(self, session_id: str) -> None:
        await self._wait("clear")

    async def ping(self) -> None:
        await self._wait("ping")

    async def close(self) -> None:
        pass

    async def _wait(self, what: str) -> Sequence[MessagePair]:
        self.calls.append(what)
        await asyncio.Event().wait()
        return ()


def test_run_asks_a_silent_store_twice_and_each_time_within_the_limit() -> None:
    silent = NeverAnswers()
    limits = Limits(context_timeout=timedelta(seconds=0.05))

    async def scenario(here: Running) -> None:
        bounded = BoundedContext(silent, limits.context_timeout)
        conductor = evolve(here.service.executions.conductor, context=bounded, limits=limits)
        here.service.executions.conductor = conductor
        order = Order("s-1", "hello", AgentFlow.CHAT)
        outcome = await (await here.service.executions.submit(order)).outcome()
        assert outcome.run.status == "SUCCESS" and outcome.run.context_degraded
        assert silent.calls == ["recall", "append"]

    memory_backend().run(scenario)
