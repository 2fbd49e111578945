"""Runs: stored once, addressed by their session, ordered in one way only."""

from __future__ import annotations

import random

import pytest
from attrs import evolve

from casenotes.core.errors import RunAlreadyExists, RunNotFound
from casenotes.core.model import DiagnosisRun
from casenotes.core.rules import latest_run, recency
from casenotes.core.words import RunStatus
from casenotes.ports.contract.stage import (
    add_run,
    add_runs,
    answered,
    at,
    committed,
    end_run,
    on_fresh_ledger,
    picture,
    read_run,
    started,
)
from casenotes.ports.ledger import Ledger

SEEDS = range(8)
SESSIONS_PER_SEED = 12


def full_run() -> DiagnosisRun:
    """A run with a value in every field."""
    return DiagnosisRun(
        run_id="r",
        session_id="s",
        query="why",
        status=RunStatus.SUCCESS,
        agent_flow="AN_OLDER_WORD",
        created_at=at(0),
        updated_at=at(8),
        finished_at=at(7),
        answer="because",
        error_message="a warning",
        self_evaluation={"score": 0.5},
        orchestration_trace={"version": 1, "transitions": []},
        feedback="useful",
        feedback_comment="thanks",
        feedback_at=at(8),
        step_count=3,
        tool_call_count=4,
        degraded=True,
        context_degraded=True,
        lease_owner="alpha",
        lease_expires_at=at(30),
    )


class RunsContract:
    @pytest.mark.parametrize("run", [started(), full_run()], ids=["started", "full"])
    @on_fresh_ledger
    async def test_added_run_is_returned_with_its_id_and_read_back_equal(
        self, ledger: Ledger, run: DiagnosisRun
    ) -> None:
        stored = await add_run(ledger, run)
        assert isinstance(stored.id, int)
        assert evolve(stored, id=None) == run
        read = await read_run(ledger, "s", "r")
        assert read == stored
        assert read.status is run.status
        async with ledger.work() as work:
            assert await work.runs.lock("s", "r") == stored
            assert await work.runs.lock_latest("s") == stored

    @on_fresh_ledger
    async def test_ledger_has_a_run_of_its_session_until_that_is_erased(self, ledger: Ledger) -> None:
        await add_run(ledger, started("r", "s"))
        await add_run(ledger, started("r-t", "t"))
        assert await ledger.has_run("s", "r")
        for session_id, run_id in (("t", "r"), ("s", "r-t"), ("s", "R"), ("S", "r"), ("s", "")):
            assert not await ledger.has_run(session_id, run_id)
        await end_run(ledger, answered(started("r", "s")))
        assert await ledger.has_run("s", "r")
        async with committed(ledger) as work:
            await work.erase("s", at=at(9))
        assert not await ledger.has_run("s", "r")
        assert await ledger.has_run("t", "r-t")

    @on_fresh_ledger
    async def test_unknown_run_is_none(self, ledger: Ledger) -> None:
        await add_run(ledger, started("r"))
        async with ledger.work() as work:
            assert await work.runs.get("s", "other") is None
            assert await work.runs.lock("s", "other") is None
            assert await work.runs.lock_to_end("s", "other") is None
            assert await work.runs.latest("other") is None
            assert await work.runs.lock_latest("other") is None

    @on_fresh_ledger
    async def test_run_ids_of_the_store_rise_in_insertion_order(self, ledger: Ledger) -> None:
        ids = [(await add_run(ledger, started(f"r-{n}", f"s-{n % 2}", seconds=-n))).id or 0 for n in range(5)]
        assert ids == sorted(set(ids))

    @pytest.mark.parametrize("session_id", ["s", "t"])
    @on_fresh_ledger
    async def test_taken_run_id_is_refused_and_the_stored_run_left_alone(
        self, ledger: Ledger, session_id: str
    ) -> None:
        await add_run(ledger, started("r", "s"))
        before = await picture(ledger, "s"), await picture(ledger, session_id)
        with pytest.raises(RunAlreadyExists):
            async with committed(ledger) as work:
                await work.runs.add(started("r", session_id, query="another question", seconds=9))
        assert (await picture(ledger, "s"), await picture(ledger, session_id)) == before

    @on_fresh_ledger
    async def test_latest_run_is_the_one_created_last_not_the_one_stored_last(self, ledger: Ledger) -> None:
        await add_runs(ledger, started("r-1", seconds=5), started("r-2", seconds=9), started("r-3"))
        async with ledger.work() as work:
            for latest in (await work.runs.latest("s"), await work.runs.lock_latest("s")):
                assert latest is not None
                assert latest.run_id == "r-2"

    @on_fresh_ledger
    async def test_latest_run_breaks_equal_timestamps_by_insertion_order(self, ledger: Ledger) -> None:
        await add_runs(ledger, started("r-2"), started("r-3"), started("r-1"))
        async with ledger.work() as work:
            for latest in (await work.runs.latest("s"), await work.runs.lock_latest("s")):
                assert latest is not None
                assert latest.run_id == "r-1"

    @on_fresh_ledger
    async def test_latest_run_tells_microseconds_apart(self, ledger: Ledger) -> None:
        await add_runs(ledger, started("r-1", seconds=0.000001), started("r-2", seconds=0))
        async with ledger.view() as view:
            latest = await view.runs.latest("s")
        assert latest is not None
        assert latest.run_id == "r-1"

    @pytest.mark.parametrize("seed", SEEDS)
    @on_fresh_ledger
    async def test_store_and_core_rules_agree_on_the_latest_run_and_on_the_order(
        self, ledger: Ledger, seed: int
    ) -> None:
        dice = random.Random(seed)
        runs = [
            started(f"r-{dice.getrandbits(40):010x}-{n}", f"s-{n % SESSIONS_PER_SEED}", seconds=moment)
            for n in range(SESSIONS_PER_SEED * 6)
            for moment in [dice.choice((0, 0.000001, 1, 1, 1, 86_400))]
        ]
        dice.shuffle(runs)
        stored = await add_runs(ledger, *runs)
        async with ledger.view() as view:
            for session_id in {run.session_id for run in stored}:
                own = [run for run in stored if run.session_id == session_id]
                assert await view.runs.latest(session_id) == latest_run(own)
                page = await view.runs.page(session_id, before=None, limit=len(runs))
                newest_first = sorted(own, key=recency, reverse=True)
                assert [summary.run_id for summary in page] == [run.run_id for run in newest_first]

    @on_fresh_ledger
    async def test_context_degraded_is_noted_and_nothing_else_changes(self, ledger: Ledger) -> None:
        before = await add_run(ledger, started())
        async with committed(ledger) as work:
            await work.runs.set_context_degraded("s", "r")
        assert await read_run(ledger, "s", "r") == evolve(before, context_degraded=True)

    @pytest.mark.parametrize(("session_id", "run_id"), [("s", "unknown"), ("t", "r")])
    @on_fresh_ledger
    async def test_context_degraded_of_a_run_that_is_not_there_raises(
        self, ledger: Ledger, session_id: str, run_id: str
    ) -> None:
        await add_runs(ledger, started("r", "s"), started("r-t", "t"))
        before = await picture(ledger)
        with pytest.raises(RunNotFound):
            async with committed(ledger) as work:
                await work.runs.set_context_degraded(session_id, run_id)
        assert await picture(ledger) == before
