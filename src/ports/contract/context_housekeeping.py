"""Context stores that outlive their process, and context stores that cannot be reached."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from casenotes.core.errors import ContextUnavailable
from casenotes.ports.contract.context import ContextStage, HeldClock, OpenContext, pair, pairs, recalled, talk
from casenotes.ports.contract.stage import all_at_once, asynchronous


class DurableContextContract(ContextStage):
    """For stores that outlive their process: each time ``open_context`` is entered, it opens the same store."""

    @asynchronous
    async def test_conversation_is_remembered_after_the_store_was_opened_again(
        self, open_context: OpenContext
    ) -> None:
        async with open_context() as store:
            await talk(store, range(3))
        async with open_context() as store:
            assert await recalled(store) == pairs(range(3))
            await talk(store, range(3, 4))
            assert await recalled(store) == pairs(range(4))

    @asynchronous
    async def test_time_passes_while_the_store_is_closed(self, open_context: OpenContext) -> None:
        clock = HeldClock()
        async with open_context(ttl=100, clock=clock) as store:
            await talk(store, range(2))
        async with open_context(ttl=100, clock=clock) as store:
            await self.pass_time(store, clock, 120)
            assert await recalled(store) == []

    @asynchronous
    async def test_two_stores_on_one_medium_share_their_conversations(
        self, open_context: OpenContext
    ) -> None:
        async with open_context(window=40) as one, open_context(window=40) as other:
            await all_at_once(store.append("s", pair(n)) for n in range(20) for store in (one, other))
            seen = await recalled(one)
            assert seen == await recalled(other)
            assert sorted(seen, key=str) == sorted([*pairs(range(20)), *pairs(range(20))], key=str)
            await other.clear("s")
            assert await recalled(one) == []


class ContextOutageContract:
    """For stores that can be away: ``unreachable_context`` opens one that cannot reach its server or file.

    Where its address holds a secret, the secret holds the word ``hunter2``.
    """

    @pytest.mark.parametrize("method", ["recall", "append", "clear", "ping"])
    @asynchronous
    async def test_unreachable_store_says_so_in_our_own_words(
        self, unreachable_context: OpenContext, method: str
    ) -> None:
        async with unreachable_context() as store:
            calls: dict[str, Callable[[], Awaitable[object]]] = {
                "recall": lambda: store.recall("s"),
                "append": lambda: store.append("s", pair(1)),
                "clear": lambda: store.clear("s"),
                "ping": lambda: store.ping(),
            }
            with pytest.raises(ContextUnavailable) as raised:
                await calls[method]()
        assert "hunter2" not in str(raised.value)

    @asynchronous
    async def test_unreachable_store_can_be_closed(self, unreachable_context: OpenContext) -> None:
        async with unreachable_context() as store:
            await store.close()
