from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn
from unittest.mock import patch

import pytest

from casenotes.adapters.postgres.pool import PostgresPool
from casenotes.adapters.sql.turns import Turns
from casenotes.adapters.sqlite.threads import SqliteConnections
from casenotes.core.errors import LedgerUnavailable

AGES = 600.0
"""Seconds that no test waits for."""


def turns(at_once: int, wait_seconds: float = AGES) -> Turns:
    return Turns(at_once, wait_seconds, "busy")


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def played() -> None:
        async with asyncio.timeout(60):
            await scene()

    asyncio.run(played())


async def all_have_gone_as_far_as_they_can() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_as_many_turns_as_allowed_are_had_without_a_wait_or_a_timer() -> None:
    async def scene() -> None:
        given = turns(3)
        with patch.object(
            asyncio.get_running_loop(), "call_at", side_effect=AssertionError("a timer was set")
        ):
            for number in range(3):
                assert given.out == number
                with pytest.raises(StopIteration):  # had at the first step: the loop was not gone back to
                    given.take().__await__().send(None)
            with pytest.raises(AssertionError, match="a timer was set"):
                await given.take()
        assert given.out == 3

    play(scene)


def test_a_turn_that_is_not_free_in_time_is_refused_and_none_is_lost() -> None:
    async def scene() -> None:
        given = turns(1, wait_seconds=0)
        await given.take()
        for _ in range(3):
            with pytest.raises(LedgerUnavailable, match=r"^busy$"):
                await given.take()
            assert given.out == 1
        given.give_back()
        await given.take()
        assert given.out == 1

    play(scene)


def test_turns_are_given_in_the_order_in_which_they_are_asked_for() -> None:
    async def scene() -> None:
        given = turns(2)
        had: list[int] = []

        async def have(number: int) -> None:
            await given.take()
            had.append(number)
            assert given.out <= 2
            await asyncio.sleep(0)
            given.give_back()

        await asyncio.gather(*(have(number) for number in range(20)))
        assert (had, given.out) == (list(range(20)), 0)

    play(scene)


def test_whoever_comes_as_a_turn_is_given_to_one_who_waits_does_not_overtake_them() -> None:
    async def scene() -> None:
        given = turns(1)
        had: list[str] = []

        async def have(name: str) -> None:
            await given.take()
            had.append(name)

        await given.take()
        async with asyncio.TaskGroup() as group:
            group.create_task(have("first"))
            await all_have_gone_as_far_as_they_can()
            given.give_back()
            group.create_task(have("second"))
            await all_have_gone_as_far_as_they_can()
            assert (had, given.out) == (["first"], 1)
            given.give_back()
        assert (had, given.out) == (["first", "second"], 1)

    play(scene)


def test_one_who_goes_away_while_waiting_takes_no_turn() -> None:
    async def scene() -> None:
        given = turns(1)
        await given.take()
        waiting = asyncio.create_task(given.take())
        behind = asyncio.create_task(given.take())
        await all_have_gone_as_far_as_they_can()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        given.give_back()
        await behind
        assert given.out == 1

    play(scene)


@pytest.mark.parametrize("gone", [True, False], ids=["goes-away", "is-refused"])
def test_a_turn_given_as_its_waiter_leaves_goes_to_the_next(gone: bool) -> None:
    async def scene() -> None:
        given = turns(1, wait_seconds=AGES if gone else 0)
        await given.take()
        waiting = asyncio.create_task(given.take())
        await asyncio.sleep(
            0
        )  # it waits now; a limit of 0 is heeded after this step, in which the turn is given
        given.give_back()
        if gone:
            waiting.cancel()
        [end] = await asyncio.gather(waiting, return_exceptions=True)
        assert isinstance(end, asyncio.CancelledError if gone else LedgerUnavailable)
        assert given.out == 0
        await given.take()
        assert given.out == 1

    play(scene)


def test_a_ledger_that_is_busy_says_what_with() -> None:
    async def scene() -> None:
        with pytest.raises(
            LedgerUnavailable, match=r"^the ledger is busy: no connection became free in time$"
        ):
            await PostgresPool(size=0, turn_seconds=0, arguments={}).take()
        threads = SqliteConnections("reader", "BEGIN", size=0, turn_seconds=0, open_file=no_file)
        with pytest.raises(LedgerUnavailable, match=r"^the ledger is busy: other work did not end in time$"):
            async with threads.connection():
                pass

    def no_file() -> NoReturn:
        raise AssertionError("a connection was opened")

    play(scene)
