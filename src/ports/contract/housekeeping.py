"""The ledger itself: it answers, it says when it does not, and it closes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from casenotes.core.errors import CasenotesError, LedgerUnavailable, SchemaOutOfDate
from casenotes.ports.contract.stage import (
    NAIVE,
    OpenLedger,
    add_run,
    all_at_once,
    answered,
    asynchronous,
    at,
    chat_session,
    committed,
    end,
    on_fresh_ledger,
    read_run,
    read_session,
    started,
)
from casenotes.ports.ledger import Ledger, UnitOfWork

DRIVER_WORDS = (
    "unable to open",
    "no such table",
    "does not exist",
    "connect call failed",
    "operationalerror",
    "sqlalche",
    "asyncpg",
    "sqlite3",
    "errno",
    "[sql",
    "select ",
    "insert ",
)
"""Words that only a driver would say."""


def assert_speaks_for_itself(error: Exception) -> None:
    said = str(error).lower()
    assert not [word for word in DRIVER_WORDS if word in said], said


class HousekeepingContract:
    @on_fresh_ledger
    async def test_check_returns_when_the_ledger_is_ready(self, ledger: Ledger) -> None:
        await ledger.check()
        await add_run(ledger, started())
        await ledger.check()

    @on_fresh_ledger
    async def test_what_is_refused_is_refused_in_our_own_words(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        async with committed(ledger) as work:
            await work.journal.add_step(run.step(1, "planner", at(1)))
            await work.journal.add_tool(run.tool_call(1, "logs.search", at(1)))
        refused: list[Callable[[UnitOfWork], Awaitable[object]]] = [
            lambda work: work.runs.add(run),
            lambda work: work.journal.add_step(run.step(1, "planner", at(1))),
            lambda work: work.journal.add_tool(run.tool_call(1, "logs.search", at(1))),
            lambda work: work.journal.add_step(run.step(2, "planner", NAIVE)),
            lambda work: end(work, answered(started("unknown"))),
            lambda work: work.sessions.page(query=None, before="unknown", limit=9),
        ]
        for write in refused:
            with pytest.raises((CasenotesError, ValueError)) as raised:
                async with committed(ledger) as work:
                    await write(work)
            assert_speaks_for_itself(raised.value)

    @on_fresh_ledger
    async def test_ledger_may_be_closed_more_than_once(self, ledger: Ledger) -> None:
        await add_run(ledger, started())
        await ledger.close()
        await ledger.close()


class DurabilityContract:
    """For ledgers that outlive their process: each time ``open_ledger`` is entered, it opens the same store."""

    @asynchronous
    async def test_committed_work_is_there_after_the_ledger_was_opened_again(
        self, open_ledger: OpenLedger
    ) -> None:
        async with open_ledger() as ledger:
            run = await add_run(ledger, started())
            async with ledger.work() as work:
                await work.sessions.use(chat_session("s", seconds=9))
        async with open_ledger() as ledger:
            assert await read_run(ledger, "s", "r") == run
            assert await read_session(ledger, "s") == chat_session("s"), "uncommitted work was kept"

    @asynchronous
    async def test_numbers_are_not_reused_after_the_ledger_was_opened_again(
        self, open_ledger: OpenLedger
    ) -> None:
        async with open_ledger() as ledger:
            run = await add_run(ledger, started("r-1"))
            async with committed(ledger) as work:
                await work.erase("s", at=at())
        async with open_ledger() as ledger:
            assert ((await add_run(ledger, started("r-2"))).id or 0) > (run.id or 0) > 0

    @asynchronous
    async def test_two_ledgers_on_one_store_see_each_others_commits(self, open_ledger: OpenLedger) -> None:
        async with open_ledger() as one, open_ledger() as other:
            run = await add_run(one, started("r-1"))
            assert await read_run(other, "s", "r-1") == run
            await add_run(other, started("r-2", seconds=9))
            async with one.view() as view:
                latest = await view.runs.latest("s")
            assert latest is not None
            assert latest.run_id == "r-2"

    @asynchronous
    async def test_two_ledgers_on_one_store_lose_nothing_when_they_write_at_once(
        self, open_ledger: OpenLedger
    ) -> None:
        async with open_ledger() as one, open_ledger() as other:

            async def turn(ledger: Ledger, n: int) -> None:
                async with committed(ledger) as work:
                    await work.sessions.ensure(chat_session())
                    await end(work, answered(await work.runs.add(started(f"r-{n}"))))

            await all_at_once(
                turn(ledger, 2 * n + m) for n in range(10) for m, ledger in enumerate((one, other))
            )
            assert (await read_session(one, "s")).message_pair_count == 20
            async with other.view() as view:
                assert len(await view.runs.page("s", before=None, limit=99)) == 20


class OutageContract:
    """For ledgers whose database can be away.

    ``unreachable_ledger`` opens a ledger that cannot reach its database, ``outdated_ledger`` one whose tables are
    of another revision; opening as such succeeds.
    """

    @asynchronous
    async def test_check_of_an_unreachable_ledger_says_so(self, unreachable_ledger: OpenLedger) -> None:
        async with unreachable_ledger() as ledger:
            with pytest.raises(LedgerUnavailable) as raised:
                await ledger.check()
        assert_speaks_for_itself(raised.value)

    @asynchronous
    async def test_work_on_an_unreachable_ledger_is_refused_in_our_own_words(
        self, unreachable_ledger: OpenLedger
    ) -> None:
        async with unreachable_ledger() as ledger:
            with pytest.raises(LedgerUnavailable) as raised:
                await add_run(ledger, started())
        assert_speaks_for_itself(raised.value)

    @asynchronous
    async def test_view_of_an_unreachable_ledger_is_refused_in_our_own_words(
        self, unreachable_ledger: OpenLedger
    ) -> None:
        async with unreachable_ledger() as ledger:
            with pytest.raises(LedgerUnavailable) as raised:
                await read_session(ledger, "s")
        assert_speaks_for_itself(raised.value)

    @asynchronous
    async def test_unreachable_ledger_can_be_closed(self, unreachable_ledger: OpenLedger) -> None:
        async with unreachable_ledger() as ledger:
            await ledger.close()

    @asynchronous
    async def test_check_of_an_outdated_ledger_says_so(self, outdated_ledger: OpenLedger) -> None:
        async with outdated_ledger() as ledger:
            with pytest.raises(SchemaOutOfDate) as raised:
                await ledger.check()
        assert_speaks_for_itself(raised.value)
