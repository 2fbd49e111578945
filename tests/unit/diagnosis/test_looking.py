"""Lookups made several at once: each once, told in their order, given up when they take too long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import pytest

from casenotes.adapters.agents import EmbeddedDiagnostician
from casenotes.adapters.agents.looking import AT_ONCE, Looking
from casenotes.adapters.agents.sources import Sources
from casenotes.core.words import AgentFlow, StepStatus
from casenotes.ports.agent import (
    About,
    Closing,
    Enquiry,
    Lookup,
    Observation,
    ObservationStatus,
    OpenEnded,
    ToolCalled,
)

MANY = [Lookup("logs", {"pod": f"web-{number}"}) for number in range(10)]


class Gated:
    """A source whose lookups wait until they are let through, and note how many wait at once."""

    tools = frozenset({"logs"})

    def __init__(self) -> None:
        self.gates = {str(lookup.arguments["pod"]): asyncio.Event() for lookup in MANY}
        self.under_way = 0
        self.full = asyncio.Event()
        self.most = 0
        self.asked: list[str] = []
        self.stopped = 0
        self.closed = 0
        self.told: list[About] = []

    async def offer(self) -> Sequence[Lookup]:
        return MANY[:1]

    async def offer_for(self, about: About) -> Sequence[Lookup]:
        self.told.append(about)
        return MANY[1:2]

    async def look(self, lookup: Lookup) -> Observation:
        pod = str(lookup.arguments["pod"])
        self.asked.append(pod)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        if self.under_way == AT_ONCE:
            self.full.set()
        try:
            await self.gates[pod].wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        finally:
            self.under_way -= 1
        return Observation(ObservationStatus.SUCCESS, pod)

    async def close(self) -> None:
        self.closed += 1


def results(calls: Sequence[ToolCalled]) -> list[object]:
    return [call.result for call in calls]


def test_lookups_end_in_any_order_and_are_told_in_theirs() -> None:
    async def scene() -> None:
        source = Gated()
        looking = Looking(source, lambda: 0.0)

        async def let_through() -> None:
            await source.full.wait()
            for number in reversed(range(len(MANY))):
                source.gates[f"web-{number}"].set()
                await asyncio.sleep(0)

        opener = asyncio.create_task(let_through())
        calls = [call async for call in looking.look_at_all([*MANY, MANY[3]])]
        await opener
        assert results(calls) == [f"web-{number}" for number in range(10)]
        assert [call.number for call in looking.calls] == list(range(1, 11))
        assert (source.most, len(source.asked)) == (AT_ONCE, 10)
        assert [call async for call in looking.look_at_all(MANY)] == []

    asyncio.run(scene())


def test_what_is_told_is_known_before_the_rest_is_done() -> None:
    async def scene() -> None:
        source = Gated()
        looking = Looking(source, lambda: 0.0)
        source.gates["web-0"].set()
        async with aclosing(looking.look_at_all(MANY)) as calls:
            assert (await anext(calls)).result == "web-0"
            assert looking.made(MANY[0]) is not None
            assert looking.made(MANY[1]) is None
        assert source.stopped == len(source.asked) - 1
        assert source.under_way == 0

    asyncio.run(scene())


def test_a_cancelled_run_leaves_no_lookup_behind() -> None:
    async def scene() -> None:
        source = Gated()

        async def run() -> None:
            async with aclosing(Looking(source, lambda: 0.0).look_at_all(MANY)) as calls:
                async for _ in calls:
                    pass

        task = asyncio.create_task(run())
        await source.full.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert source.under_way == 0
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scene())


def test_a_silent_source_fails_its_own_lookup_and_no_other() -> None:
    async def scene() -> None:
        source = Gated()
        source.gates["web-1"].set()
        looking = Looking(source, lambda: 0.0, patience=0.05)
        slow, quick = [call async for call in looking.look_at_all(MANY[:2])]
        assert (slow.status, slow.error_message) == (StepStatus.FAILED, "no answer within 0.05 s")
        assert quick.result == "web-1"

    asyncio.run(scene())


def test_a_time_out_of_the_sources_own_is_not_taken_for_ours() -> None:
    class Raising(Gated):
        async def look(self, lookup: Lookup) -> Observation:
            raise TimeoutError

    async def scene() -> None:
        with pytest.raises(TimeoutError):
            await Looking(Raising(), lambda: 0.0).look(MANY[0])

    asyncio.run(scene())


def test_an_open_ended_source_is_told_what_the_run_is_about_and_closed_with_the_rest() -> None:
    async def scene() -> None:
        source = Gated()
        assert isinstance(source, OpenEnded) and isinstance(source, Closing)
        for gate in source.gates.values():
            gate.set()
        diagnostician = EmbeddedDiagnostician([source])
        enquiry = Enquiry("s", "r", "why does web-1 fail?", AgentFlow.CHAT)
        calls = [event async for event in diagnostician.diagnose(enquiry) if isinstance(event, ToolCalled)]
        assert {str(call.result) for call in calls} == {"web-0", "web-1"}
        assert [about.question for about in source.told] == ["why does web-1 fail?"]
        await diagnostician.close()
        assert source.closed == 1

    asyncio.run(scene())


def test_a_source_that_does_not_say_what_it_offers_in_time_offers_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Slow(Gated):
        async def offer(self) -> Sequence[Lookup]:
            await asyncio.sleep(60)
            return MANY

    monkeypatch.setattr("casenotes.adapters.agents.sources.PATIENCE", 0.05)
    assert asyncio.run(Sources([Slow(), Gated()]).offer()) == (MANY[0],)
