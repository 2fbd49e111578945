"""Seals: an ended run carries its digest, and the runs of a session form one chain in the order in which they end."""

from __future__ import annotations

import asyncio

import pytest

from casenotes.core.errors import InvalidTransition, RunNotFound
from casenotes.core.model import DiagnosisRun
from casenotes.core.seal import ChainHead, seal
from casenotes.ports.contract.journal import write_both
from casenotes.ports.contract.stage import (
    add_run,
    add_runs,
    all_at_once,
    answered,
    at,
    committed,
    end_run,
    on_fresh_ledger,
    picture,
    read_run,
    started,
    useful,
)
from casenotes.ports.ledger import Ledger


async def chain(ledger: Ledger, session_id: str = "s") -> ChainHead:
    async with ledger.work() as work:
        return await work.sessions.lock_chain(session_id)


class SealsContract:
    @on_fresh_ledger
    async def test_chain_of_a_session_without_ended_runs_and_of_none_is_empty(self, ledger: Ledger) -> None:
        await add_run(ledger, started())
        assert await chain(ledger) == ChainHead(0, None)
        assert await chain(ledger, "unknown") == ChainHead(0, None)

    @on_fresh_ledger
    async def test_running_run_has_no_digest_and_an_ended_one_that_of_its_seal(self, ledger: Ledger) -> None:
        running = await add_run(ledger, started())
        assert running.digest is None
        sealed = await end_run(ledger, answered(running))
        assert sealed.digest is not None
        assert (await read_run(ledger, "s", "r")).digest == sealed.digest

    @on_fresh_ledger
    async def test_chain_follows_the_order_in_which_runs_end(self, ledger: Ledger) -> None:
        first, second = await add_runs(ledger, started("r-1"), started("r-2", seconds=1))
        ended = [await end_run(ledger, answered(run)) for run in (second, first)]
        assert await chain(ledger) == ChainHead(2, ended[1].digest)
        assert ended[0].digest != ended[1].digest

    @on_fresh_ledger
    async def test_chains_of_sessions_are_apart(self, ledger: Ledger) -> None:
        mine, other = await add_runs(ledger, started("r-s", "s"), started("r-t", "t"))
        sealed = await end_run(ledger, answered(mine))
        assert await chain(ledger, "t") == ChainHead(0, None)
        await end_run(ledger, answered(other))
        assert await chain(ledger, "s") == ChainHead(1, sealed.digest)

    @on_fresh_ledger
    async def test_seal_over_rows_read_back_is_that_over_the_rows_written(self, ledger: Ledger) -> None:
        running = await add_run(ledger, started())
        async with committed(ledger) as work:
            await write_both(work, running, 1)
            await write_both(work, running, 2)
        sealed = await end_run(ledger, answered(running))
        async with ledger.view() as view:
            steps, tools = await view.journal.steps("s", "r"), await view.journal.tools("s", "r")
        again = seal(await read_run(ledger, "s", "r"), steps, tools, ChainHead())
        assert again.digest == sealed.digest

    @on_fresh_ledger
    async def test_feedback_leaves_the_digest_alone(self, ledger: Ledger) -> None:
        sealed = await end_run(ledger, answered(await add_run(ledger, started())))
        async with committed(ledger) as work:
            await work.runs.set_feedback("s", "r", useful())
        assert await read_run(ledger, "s", "r") == sealed.rated(useful())
        assert await chain(ledger) == ChainHead(1, sealed.digest)

    @pytest.mark.parametrize("head", [ChainHead(0, None), ChainHead(2, "d")], ids=["behind", "ahead"])
    @on_fresh_ledger
    async def test_seal_that_does_not_continue_the_chain_is_refused_and_nothing_changes(
        self, ledger: Ledger, head: ChainHead
    ) -> None:
        done, running = await add_runs(ledger, started("r-done"), started())
        await end_run(ledger, answered(done))
        before, chain_before = await picture(ledger), await chain(ledger)
        ended = answered(running)
        with pytest.raises(ValueError):
            async with committed(ledger) as work:
                await work.runs.end(ended, seal(ended, [], [], head), expires_at=None)
        assert (await picture(ledger), await chain(ledger)) == (before, chain_before)

    @on_fresh_ledger
    async def test_end_that_is_refused_leaves_the_chain_alone(self, ledger: Ledger) -> None:
        sealed = await end_run(ledger, answered(await add_run(ledger, started())))
        with pytest.raises(InvalidTransition):
            await end_run(ledger, answered(started(), "another answer"))
        assert await chain(ledger) == ChainHead(1, sealed.digest)

    @pytest.mark.parametrize("run_id", ["r", "unknown"])
    @on_fresh_ledger
    async def test_end_that_is_refused_leaves_the_chain_alone_though_its_unit_of_work_is_committed(
        self, ledger: Ledger, run_id: str
    ) -> None:
        sealed = await end_run(ledger, answered(await add_run(ledger, started())))
        before = await picture(ledger)
        again = answered(started(run_id), "another answer")
        next_seal = seal(again, [], [], ChainHead(1, sealed.digest))
        async with committed(ledger) as work:
            with pytest.raises((InvalidTransition, RunNotFound)):
                await work.runs.end(again, next_seal, expires_at=at(99))
        assert (await picture(ledger), await chain(ledger)) == (before, ChainHead(1, sealed.digest))

    @on_fresh_ledger
    async def test_run_locked_to_end_comes_with_its_sessions_chain(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, started("r-1"), started("r-2"), started("r-t", "t"))
        async with ledger.work() as work:
            assert await work.runs.lock_to_end("s", "r-1") == (runs[0], ChainHead(0, None))
        sealed = await end_run(ledger, answered(runs[0]))
        async with ledger.work() as work:
            assert await work.runs.lock_to_end("s", "r-1") == (sealed, ChainHead(1, sealed.digest))
            assert await work.runs.lock_to_end("s", "r-2") == (runs[1], ChainHead(1, sealed.digest))
            assert await work.runs.lock_to_end("t", "r-t") == (runs[2], ChainHead(0, None))

    @on_fresh_ledger
    async def test_run_without_a_session_is_not_locked_to_end(self, ledger: Ledger) -> None:
        async with committed(ledger) as work:
            await work.runs.add(started("r", "without"))
        async with ledger.work() as work:
            assert await work.runs.lock("without", "r") is not None
            assert await work.runs.lock_to_end("without", "r") is None

    @on_fresh_ledger
    async def test_chain_is_kept_by_others_from_a_run_that_is_locked_to_end(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, *(started(f"r-{n}") for n in range(8)))

        async def end_locked(run: DiagnosisRun) -> None:
            async with committed(ledger) as work:
                locked = await work.runs.lock_to_end("s", run.run_id)
                assert locked is not None
                await asyncio.sleep(0)
                ended = answered(locked[0])
                await work.runs.end(ended, seal(ended, [], [], locked[1]), expires_at=None)

        await all_at_once(end_locked(run) for run in runs)
        assert (await chain(ledger)).count == 8

    @on_fresh_ledger
    async def test_runs_that_end_at_once_form_one_chain(self, ledger: Ledger) -> None:
        running = await add_runs(ledger, *(started(f"r-{n}", seconds=n) for n in range(8)))
        ended = await all_at_once(end_run(ledger, answered(run, seconds=20)) for run in running)
        head = await chain(ledger)
        assert head.count == 8
        assert head.digest in {run.digest for run in ended}
        assert len({run.digest for run in ended}) == 8
