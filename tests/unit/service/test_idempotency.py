"""An order sent twice under one key is one run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from unit.service.scene import followed, play, scene, told

from casenotes.core.errors import IdempotencyConflict
from casenotes.core.service.recording import Idempotency
from casenotes.core.service.stream import Order
from casenotes.core.words import AgentFlow
from casenotes.ports.agent import AgentEvent, Enquiry, Progress


async def endless(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    yield Progress("on it")
    await asyncio.Event().wait()


def test_a_key_used_again_gives_the_first_runs_answer_and_no_second_run() -> None:
    async def act() -> None:
        s = scene()
        key = Idempotency("k", "digest")
        first = await followed(s, Order("s-1", "Why?", AgentFlow.CHAT, idempotency=key))
        again = await followed(s, Order("s-fresh", "Why?", AgentFlow.CHAT, idempotency=key))
        assert told(again) == told(first)
        assert again[-1] == first[-1]
        assert len(await s.service.reading.sessions()) == 1
        with pytest.raises(IdempotencyConflict):
            await followed(s, Order("s-1", "Why?", AgentFlow.CHAT, idempotency=Idempotency("k", "other")))

    play(act)


def test_a_key_whose_first_run_still_runs_is_a_conflict() -> None:
    async def act() -> None:
        s = scene(endless)
        order = Order("s-1", "Why?", AgentFlow.CHAT, idempotency=Idempotency("k", "digest"))
        await s.service.executions.submit(order)
        with pytest.raises(IdempotencyConflict):
            await s.service.executions.submit(order)
        await s.service.executions.close(timedelta(0))

    play(act)
