"""Earlier turns are given to the next run, and a run is answered without them when they are not to be had."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from unit.service.scene import play, scene

from casenotes.adapters.context import MemoryContextStore
from casenotes.core.errors import ContextUnavailable
from casenotes.core.model import MessagePair
from casenotes.core.service.conducting import Limits
from casenotes.core.service.stream import Order
from casenotes.core.words import AgentFlow, RunStatus


def test_the_next_question_of_a_conversation_is_asked_with_the_earlier_turns() -> None:
    async def act() -> None:
        s = scene()
        await s.ask("one")
        await s.ask("two")
        await s.ask("else", session_id="s-2")
        assert [e.conversation for e in s.agent.enquiries] == [
            (),
            (MessagePair("one", "About one: [T1]\n"),),
            (),
        ]

    play(act)


def test_an_aiops_run_neither_reads_nor_adds_to_the_conversation() -> None:
    async def act() -> None:
        s = scene()
        await s.ask("one")
        await s.ask("ops", flow=AgentFlow.AI_OPS)
        await s.ask("two")
        assert s.agent.enquiries[1].conversation == ()
        assert len(s.agent.enquiries[2].conversation) == 1
        assert (await s.service.reading.session("s-1")).message_pair_count == 2

    play(act)


class AwayContext:
    """A conversation store that cannot be reached, or never answers."""

    def __init__(self, hangs: bool = False) -> None:
        self.hangs = hangs

    async def _away(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        raise ContextUnavailable("the conversation store is away")

    async def recall(self, session_id: str) -> list[MessagePair]:
        await self._away()
        return []

    async def append(self, session_id: str, pair: MessagePair) -> None:
        await self._away()

    async def clear(self, session_id: str) -> None:
        await self._away()

    async def ping(self) -> None:
        await self._away()

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("hangs", [False, True])
def test_a_run_without_its_conversation_is_answered_and_says_so(hangs: bool) -> None:
    async def act() -> None:
        s = scene(context=AwayContext(hangs), limits=Limits(context_timeout=timedelta(seconds=0.02)))
        run = await s.ask()
        assert (run.status, run.context_degraded) == (RunStatus.SUCCESS, True)
        trace = await s.service.reading.trace("s-1")
        assert trace.run is not None
        assert trace.run.context_degraded
        with pytest.raises(ContextUnavailable):
            await s.service.conversations.erase("s-1")
        assert (await s.service.reading.trace("s-1")).run is not None

    play(act)


def test_a_run_that_has_ended_and_is_added_to_its_conversation_has_no_lease_to_lose() -> None:
    class SlowContext(MemoryContextStore):
        async def append(self, session_id: str, pair: MessagePair) -> None:
            adding.set()
            await go_on.wait()
            await super().append(session_id, pair)

    adding, go_on = asyncio.Event(), asyncio.Event()

    async def act() -> None:
        context = SlowContext()
        s = scene(context=context)
        execution = await s.service.executions.submit(Order("s-1", "Why?", AgentFlow.CHAT))
        await adding.wait()
        ticking = asyncio.create_task(s.service.leases.tick())
        for _ in range(10):
            await asyncio.sleep(0)
        go_on.set()
        await ticking
        run = (await execution.outcome()).run
        assert (run.status, run.context_degraded) == (RunStatus.SUCCESS, False)
        assert [pair.question for pair in await context.recall("s-1")] == ["Why?"]

    play(act)
