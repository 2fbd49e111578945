"""Units of work: all of it or none, seen by others at the commit and not before."""

from __future__ import annotations

import asyncio

import pytest

from casenotes.core.words import RunStatus
from casenotes.ports.contract.stage import (
    add_run,
    answered,
    at,
    case_of,
    chat_session,
    committed,
    end,
    on_fresh_ledger,
    only,
    read_session,
    started,
)
from casenotes.ports.contract.writes import LATER, WRITES, Write, all_there_is, prepare
from casenotes.ports.ledger import Ledger, UnitOfWork


class Abandoned(Exception):
    """An error of the caller's own."""


async def write_several(work: UnitOfWork) -> None:
    """Facts in several repositories that belong together."""
    await work.sessions.ensure(chat_session())
    run = await work.runs.add(started())
    await work.journal.add_step(run.step(1, "planner", at(1)))
    await end(work, answered(run))
    await work.cases.put(case_of("r"))


class UnitsOfWorkContract:
    @pytest.mark.parametrize("write", WRITES, ids=lambda write: write.name)
    @on_fresh_ledger
    async def test_write_is_there_after_commit(self, ledger: Ledger, write: Write) -> None:
        await prepare(ledger)
        before = await all_there_is(ledger)
        async with committed(ledger) as work:
            await write.call(work, LATER)
        assert await all_there_is(ledger) != before

    @on_fresh_ledger
    async def test_write_without_commit_is_rolled_back(self, ledger: Ledger) -> None:
        await prepare(ledger)
        before = await all_there_is(ledger)
        for write in WRITES:
            async with ledger.work() as work:
                await write.call(work, LATER)
            assert await all_there_is(ledger) == before, write.name

    @on_fresh_ledger
    async def test_exception_rolls_back_and_goes_on_to_the_caller(self, ledger: Ledger) -> None:
        await prepare(ledger)
        before = await all_there_is(ledger)
        for write in WRITES:
            with pytest.raises(Abandoned, match="on purpose"):
                async with ledger.work() as work:
                    await write.call(work, LATER)
                    raise Abandoned("on purpose")
            assert await all_there_is(ledger) == before, write.name

    @on_fresh_ledger
    async def test_cancellation_rolls_back_and_lets_the_next_one_in(self, ledger: Ledger) -> None:
        await prepare(ledger)
        before = await all_there_is(ledger)
        written = asyncio.Event()

        async def hang() -> None:
            async with ledger.work() as work:
                await work.runs.add(started("r-new"))
                written.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(hang())
        await written.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await all_there_is(ledger) == before
        await add_run(ledger, started("r-new"))

    @on_fresh_ledger
    async def test_work_reads_its_own_writes(self, ledger: Ledger) -> None:
        async with ledger.work() as work:
            await write_several(work)
            run = await work.runs.latest("s")
            assert run is not None
            assert run.status is RunStatus.SUCCESS
            assert await work.cases.of_run("r") is not None
            assert len(await work.journal.steps("s", "r")) == 1

    @on_fresh_ledger
    async def test_what_is_not_committed_yet_is_seen_by_nobody_else(self, ledger: Ledger) -> None:
        async with ledger.work() as work:
            await write_several(work)
            async with ledger.view() as view:
                assert await view.sessions.get("s") is None
                assert await view.runs.get("s", "r") is None
                assert await view.cases.of_run("r") is None
            await work.commit()
        async with ledger.view() as view:
            assert await view.sessions.get("s") is not None
            assert await view.runs.get("s", "r") is not None
            assert await view.cases.of_run("r") is not None

    @on_fresh_ledger
    async def test_committed_work_is_seen_before_its_block_is_left(self, ledger: Ledger) -> None:
        async with ledger.work() as work:
            await work.sessions.ensure(chat_session())
            await work.commit()
            assert await read_session(ledger, "s") == chat_session()

    @on_fresh_ledger
    async def test_rolled_back_work_takes_nothing_of_earlier_work_with_it(self, ledger: Ledger) -> None:
        async with committed(ledger) as work:
            await work.sessions.ensure(chat_session("s"))
        async with ledger.work() as work:
            await work.sessions.ensure(chat_session("t"))
            await work.sessions.use(chat_session("s", seconds=9))
        async with ledger.view() as view:
            assert await view.sessions.get("s") == chat_session("s")
            assert await view.sessions.get("t") is None

    @on_fresh_ledger
    async def test_many_abandoned_units_of_work_and_views_use_nothing_up(self, ledger: Ledger) -> None:
        for n in range(40):
            with pytest.raises(Abandoned):
                async with ledger.work() as work:
                    await work.sessions.ensure(chat_session(f"s-{n}"))
                    raise Abandoned
            with pytest.raises(Abandoned):
                async with ledger.view() as view:
                    await view.sessions.get("s")
                    raise Abandoned
        await add_run(ledger, started())
        async with ledger.view() as view:
            overview = only(await view.sessions.page(query=None, before=None, limit=99))
        assert overview.session.session_id == "s"
