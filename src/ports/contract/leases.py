"""Leases: who executes a run, believed until a moment, and prolonged by the one who holds it."""

from __future__ import annotations

import pytest
from attrs import evolve

from casenotes.ports.contract.stage import (
    NAIVE,
    add_run,
    add_runs,
    answered,
    at,
    committed,
    end_run,
    on_fresh_ledger,
    read_run,
    started,
)
from casenotes.ports.ledger import Ledger


async def expired(ledger: Ledger, seconds: float, limit: int = 100) -> list[str]:
    """The ids of runs whose lease had ended at a moment, in the order given."""
    async with ledger.view() as view:
        return [run.run_id for run in await view.runs.expired(now=at(seconds), limit=limit)]


class LeasesContract:
    @on_fresh_ledger
    async def test_expired_runs_of_any_session_come_oldest_lease_first(self, ledger: Ledger) -> None:
        await add_runs(
            ledger,
            started("r-1", "s", lease_seconds=20),
            started("r-2", "t", lease_seconds=10, owner="beta"),
            started("r-3", "s", lease_seconds=15),
            started("r-4", "s", lease_seconds=60),
        )
        assert await expired(ledger, 30) == ["r-2", "r-3", "r-1"]
        assert await expired(ledger, 30, limit=2) == ["r-2", "r-3"]

    @on_fresh_ledger
    async def test_running_run_without_a_lease_has_expired_before_all_others(self, ledger: Ledger) -> None:
        leaseless = evolve(started("r-2", seconds=5), lease_owner=None, lease_expires_at=None)
        await add_runs(ledger, started("r-1"), leaseless, started("r-3", lease_seconds=1000))
        assert await expired(ledger, 60) == ["r-2", "r-1"]
        assert await expired(ledger, 60, limit=1) == ["r-2"]

    @on_fresh_ledger
    async def test_expired_run_is_the_whole_run(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        async with ledger.view() as view:
            assert list(await view.runs.expired(now=at(31), limit=9)) == [run]

    @on_fresh_ledger
    async def test_lease_that_ends_now_has_not_expired(self, ledger: Ledger) -> None:
        await add_run(ledger, started("r", lease_seconds=30))
        assert await expired(ledger, 30) == []
        assert await expired(ledger, 30.000001) == ["r"]

    @on_fresh_ledger
    async def test_ended_run_never_expires(self, ledger: Ledger) -> None:
        running = await add_run(ledger, started("r"))
        await end_run(ledger, answered(running))
        leftover = evolve(answered(running), run_id="r-2", lease_owner="alpha", lease_expires_at=at(1))
        await add_run(ledger, leftover)
        assert await expired(ledger, 1000) == []

    @on_fresh_ledger
    async def test_renewed_lease_ends_later_and_nothing_else_changes(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started("r", lease_seconds=10))
        async with committed(ledger) as work:
            assert await work.runs.renew([("s", "r")], owner="alpha", until=at(50)) == {("s", "r")}
        assert await read_run(ledger, "s", "r") == evolve(run, lease_expires_at=at(50))
        assert await expired(ledger, 40) == []
        assert await expired(ledger, 60) == ["r"]

    @on_fresh_ledger
    async def test_renewing_never_cuts_a_lease_short(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started("r", lease_seconds=30))
        async with committed(ledger) as work:
            assert await work.runs.renew([("s", "r")], owner="alpha", until=at(10)) == {("s", "r")}
        assert await read_run(ledger, "s", "r") == run

    @on_fresh_ledger
    async def test_only_running_runs_of_the_owner_that_are_named_are_renewed(self, ledger: Ledger) -> None:
        runs = await add_runs(
            ledger,
            started("mine", "s"),
            started("mine-too", "t"),
            started("mine-unnamed", "s"),
            started("theirs", "s", owner="beta"),
            started("lookalike", "s", owner="Alpha"),
            started("ended", "s"),
            started("elsewhere", "t"),
        )
        await end_run(ledger, answered(runs[-2]))
        named = [
            *(
                (run.session_id, run.run_id)
                for run in runs
                if run.run_id not in ("mine-unnamed", "elsewhere")
            ),
            ("s", "unknown"),
            ("s", "elsewhere"),
        ]
        async with committed(ledger) as work:
            renewed = await work.runs.renew(named, owner="alpha", until=at(90))
        assert renewed == {("s", "mine"), ("t", "mine-too")}
        for run in (*runs[:-2], runs[-1]):
            ends = at(90) if (run.session_id, run.run_id) in renewed else at(30)
            assert (await read_run(ledger, run.session_id, run.run_id)).lease_expires_at == ends
        assert (await read_run(ledger, "s", "ended")).lease_expires_at is None

    @on_fresh_ledger
    async def test_expired_lease_can_still_be_renewed_by_its_owner(self, ledger: Ledger) -> None:
        await add_run(ledger, started("r", lease_seconds=10))
        assert await expired(ledger, 20) == ["r"]
        async with committed(ledger) as work:
            assert await work.runs.renew({("s", "r")}, owner="alpha", until=at(50)) == {("s", "r")}
        assert await expired(ledger, 20) == []

    @on_fresh_ledger
    async def test_renewing_nothing_renews_nothing(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        async with committed(ledger) as work:
            assert await work.runs.renew([], owner="alpha", until=at(50)) == frozenset()
        assert await read_run(ledger, "s", "r") == run

    @on_fresh_ledger
    async def test_asking_for_expired_leases_at_a_naive_time_is_refused(self, ledger: Ledger) -> None:
        with pytest.raises(ValueError):
            async with ledger.view() as view:
                await view.runs.expired(now=NAIVE, limit=9)
