from __future__ import annotations

import asyncio

import pytest

from casenotes.adapters.memory import MemoryLedger
from casenotes.core.errors import LedgerUnavailable
from casenotes.ports.contract.stage import add_run, chat_session, committed, started


def test_id_of_a_run_that_was_rolled_back_is_not_given_again() -> None:
    async def scene() -> None:
        ledger = MemoryLedger()
        first = await add_run(ledger, started("r-1"))
        async with ledger.work() as work:
            lost = await work.runs.add(started("r-2"))
        third = await add_run(ledger, started("r-3"))
        assert first.id is not None and lost.id is not None and third.id is not None
        assert first.id < lost.id < third.id

    asyncio.run(scene())


def test_unit_of_work_is_of_no_use_after_its_block() -> None:
    async def scene() -> None:
        ledger = MemoryLedger()
        async with ledger.work() as work, asyncio.timeout(5):
            await work.sessions.ensure(chat_session("s"))
        await add_run(ledger, started("r", "t"))
        with pytest.raises(RuntimeError, match="ended"):
            await work.commit()
        async with ledger.view() as view:
            assert await view.sessions.get("s") is None
            assert await view.sessions.get("t") is not None
        with pytest.raises(RuntimeError, match="ended"):
            await view.sessions.get("t")

    asyncio.run(scene())


def test_cancelled_unit_of_work_lets_the_next_one_through() -> None:
    async def scene() -> None:
        ledger = MemoryLedger()

        async def hold() -> None:
            async with ledger.work() as work:
                await work.sessions.ensure(chat_session("s"))
                await asyncio.sleep(60)

        holder = asyncio.create_task(hold())
        await asyncio.sleep(0)
        holder.cancel()
        async with asyncio.timeout(5), committed(ledger) as work:
            await work.sessions.ensure(chat_session("t"))
        async with ledger.view() as view:
            assert await view.sessions.get("s") is None

    asyncio.run(scene())


def test_closed_ledger_says_so() -> None:
    async def scene() -> None:
        ledger = MemoryLedger()
        await ledger.close()
        await ledger.close()
        with pytest.raises(LedgerUnavailable, match="closed"):
            await ledger.check()
        with pytest.raises(LedgerUnavailable, match="closed"):
            async with ledger.work():
                pass

    asyncio.run(scene())
