"""The contract of a context store: the last turns of each conversation, and nobody else's."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Protocol

import pytest
from attrs import define

from casenotes.core.model import MessagePair
from casenotes.core.text import clean
from casenotes.ports.context import ContextStore
from casenotes.ports.contract.isolation import ALIKE_IDS
from casenotes.ports.contract.stage import BEGINNING, all_at_once, asynchronous
from casenotes.ports.contract.values import TEXTS


@define
class HeldClock:
    """A clock that stands still until it is moved."""

    now: datetime = BEGINNING

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class OpenContext(Protocol):
    """Opens the store under test, with so many pairs to a conversation and so many seconds to live."""

    def __call__(
        self, *, window: int = 6, ttl: int = 100, clock: HeldClock = ...
    ) -> AbstractAsyncContextManager[ContextStore]: ...


def pair(n: int) -> MessagePair:
    return MessagePair(f"question {n}", f"answer {n}")


def pairs(numbers: range) -> list[MessagePair]:
    return [pair(n) for n in numbers]


async def talk(store: ContextStore, numbers: range, session_id: str = "s") -> None:
    for n in numbers:
        await store.append(session_id, pair(n))


async def recalled(store: ContextStore, session_id: str = "s") -> list[MessagePair]:
    return list(await store.recall(session_id))


class ContextStage:
    async def pass_time(self, store: ContextStore, clock: HeldClock, seconds: float) -> None:
        """Let time pass. A store whose server keeps its own time overrides this, and ages what it holds."""
        clock.move(seconds)


class ContextContract(ContextStage):
    """Subclass it in a test module, and give the subclass the fixture ``open_context`` (see ``OpenContext``)."""

    @asynchronous
    async def test_unknown_conversation_is_empty(self, open_context: OpenContext) -> None:
        async with open_context() as store:
            await talk(store, range(1), "t")
            assert await recalled(store, "s") == []

    @asynchronous
    async def test_pairs_are_recalled_oldest_first(self, open_context: OpenContext) -> None:
        async with open_context() as store:
            await talk(store, range(4))
            assert await recalled(store) == pairs(range(4))

    @asynchronous
    async def test_recalling_takes_nothing_away(self, open_context: OpenContext) -> None:
        async with open_context() as store:
            await talk(store, range(2))
            for _ in range(3):
                assert await recalled(store) == pairs(range(2))

    @pytest.mark.parametrize("window", [1, 2, 6])
    @asynchronous
    async def test_pairs_past_the_window_are_forgotten_oldest_first(
        self, open_context: OpenContext, window: int
    ) -> None:
        async with open_context(window=window) as store:
            for n in range(window * 2 + 1):
                await store.append("s", pair(n))
                assert await recalled(store) == pairs(range(max(0, n + 1 - window), n + 1))

    @asynchronous
    async def test_same_pair_said_twice_is_remembered_twice(self, open_context: OpenContext) -> None:
        async with open_context() as store:
            for n in (1, 1, 2, 1):
                await store.append("s", pair(n))
            assert await recalled(store) == [pair(1), pair(1), pair(2), pair(1)]

    @asynchronous
    async def test_pairs_come_back_as_they_were_given(self, open_context: OpenContext) -> None:
        given = [MessagePair(text, other) for text, other in zip(TEXTS, reversed(TEXTS), strict=True)]
        given.append(MessagePair(clean("a\x00b\ud800"), "x" * 1_000_000))
        async with open_context(window=len(given)) as store:
            for one in given:
                await store.append("s", one)
            assert await recalled(store) == given

    @asynchronous
    async def test_what_was_recalled_is_the_callers_own(self, open_context: OpenContext) -> None:
        async with open_context() as store:
            await talk(store, range(2))
            recalled_pairs = await store.recall("s")
            if isinstance(recalled_pairs, list):
                recalled_pairs.clear()
            await talk(store, range(2, 3))
            assert await recalled(store) == pairs(range(3))
            assert len(recalled_pairs) in {0, 2}, "what was recalled grew"

    @asynchronous
    async def test_session_ids_are_compared_exactly(self, open_context: OpenContext) -> None:
        async with open_context() as store:
            for n, session_id in enumerate(ALIKE_IDS):
                await store.append(session_id, pair(n))
            for n, session_id in enumerate(ALIKE_IDS):
                assert await recalled(store, session_id) == [pair(n)]
            assert await recalled(store, "B") == []

    @asynchronous
    async def test_clear_forgets_the_conversation_and_no_other(self, open_context: OpenContext) -> None:
        async with open_context() as store:
            for session_id in ALIKE_IDS:
                await talk(store, range(2), session_id)
            await store.clear("a")
            assert await recalled(store, "a") == []
            for session_id in ALIKE_IDS[1:]:
                assert await recalled(store, session_id) == pairs(range(2))

    @asynchronous
    async def test_cleared_conversation_begins_anew(self, open_context: OpenContext) -> None:
        async with open_context() as store:
            await talk(store, range(3))
            await store.clear("s")
            await talk(store, range(7, 8))
            assert await recalled(store) == [pair(7)]

    @asynchronous
    async def test_clearing_an_unknown_conversation_is_no_error(self, open_context: OpenContext) -> None:
        async with open_context() as store:
            await talk(store, range(1), "t")
            await store.clear("s")
            assert await recalled(store, "t") == [pair(0)]

    @asynchronous
    async def test_silent_conversation_is_forgotten_after_its_time_to_live(
        self, open_context: OpenContext
    ) -> None:
        clock = HeldClock()
        async with open_context(ttl=100, clock=clock) as store:
            await talk(store, range(2))
            await self.pass_time(store, clock, 95)
            assert await recalled(store) == pairs(range(2))
            await self.pass_time(store, clock, 10)
            assert await recalled(store) == []

    @asynchronous
    async def test_append_counts_the_time_to_live_of_all_pairs_from_now(
        self, open_context: OpenContext
    ) -> None:
        clock = HeldClock()
        async with open_context(ttl=100, clock=clock) as store:
            for n in range(4):
                await talk(store, range(n, n + 1))
                await self.pass_time(store, clock, 60)
                assert await recalled(store) == pairs(range(n + 1))
            await self.pass_time(store, clock, 60)
            assert await recalled(store) == []

    @asynchronous
    async def test_recalling_does_not_prolong_the_memory(self, open_context: OpenContext) -> None:
        clock = HeldClock()
        async with open_context(ttl=100, clock=clock) as store:
            await talk(store, range(2))
            await self.pass_time(store, clock, 60)
            assert await recalled(store) == pairs(range(2))
            await self.pass_time(store, clock, 60)
            assert await recalled(store) == []

    @asynchronous
    async def test_forgotten_pairs_do_not_come_back_with_a_new_one(self, open_context: OpenContext) -> None:
        clock = HeldClock()
        async with open_context(ttl=100, clock=clock) as store:
            await talk(store, range(3))
            await self.pass_time(store, clock, 120)
            await talk(store, range(8, 9))
            assert await recalled(store) == [pair(8)]

    @asynchronous
    async def test_each_conversation_has_its_own_time(self, open_context: OpenContext) -> None:
        clock = HeldClock()
        async with open_context(ttl=100, clock=clock) as store:
            await talk(store, range(1), "s")
            await self.pass_time(store, clock, 60)
            await talk(store, range(1), "t")
            await self.pass_time(store, clock, 60)
            assert await recalled(store, "s") == []
            assert await recalled(store, "t") == [pair(0)]

    @asynchronous
    async def test_of_pairs_appended_at_once_none_is_lost(self, open_context: OpenContext) -> None:
        async with open_context(window=40) as store:
            await all_at_once(store.append("s", pair(n)) for n in range(40))
            assert sorted(await recalled(store), key=str) == sorted(pairs(range(40)), key=str)

    @asynchronous
    async def test_window_holds_when_many_append_at_once(self, open_context: OpenContext) -> None:
        async with open_context(window=3) as store:
            await all_at_once(store.append(f"s-{n % 2}", pair(n)) for n in range(20))
            for half in (0, 1):
                kept = await recalled(store, f"s-{half}")
                assert len(set(kept)) == 3
                assert set(kept) <= set(pairs(range(half, 20, 2)))

    @asynchronous
    async def test_reader_sees_a_whole_pair_or_none_of_it(self, open_context: OpenContext) -> None:
        numbers = range(30)

        async def write(store: ContextStore) -> None:
            await talk(store, numbers)

        async def read(store: ContextStore) -> None:
            for _ in numbers:
                seen = await recalled(store)
                assert len(seen) <= 4
                assert set(seen) <= set(pairs(numbers)), "half a pair was seen"
                await asyncio.sleep(0)

        async with open_context(window=4) as store:
            await all_at_once([write(store), read(store), read(store)])
            assert await recalled(store) == pairs(range(26, 30))

    @asynchronous
    async def test_ping_returns_when_the_store_answers(self, open_context: OpenContext) -> None:
        async with open_context() as store:
            await store.ping()

    @asynchronous
    async def test_store_may_be_closed_more_than_once(self, open_context: OpenContext) -> None:
        async with open_context() as store:
            await talk(store, range(1))
            await store.close()
            await store.close()
