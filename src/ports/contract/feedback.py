"""Feedback: the last word on a run, and nothing but a word."""

from __future__ import annotations

import pytest
from attrs import evolve

from casenotes.core.errors import RunNotFound
from casenotes.core.model import Feedback
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
    useful,
)
from casenotes.ports.ledger import Ledger


async def rate(ledger: Ledger, feedback: Feedback, run_id: str = "r", session_id: str = "s") -> None:
    async with committed(ledger) as work:
        await work.runs.set_feedback(session_id, run_id, feedback)


class FeedbackContract:
    @on_fresh_ledger
    async def test_feedback_changes_the_feedback_and_nothing_else_of_the_run(self, ledger: Ledger) -> None:
        running = await add_run(ledger, started())
        await end_run(ledger, evolve(answered(running), step_count=2, tool_call_count=3))
        before = await read_run(ledger, "s", "r")
        await rate(ledger, useful("it was the pool", seconds=10))
        assert await read_run(ledger, "s", "r") == evolve(
            before,
            feedback="useful",
            feedback_comment="it was the pool",
            feedback_at=at(10),
            updated_at=at(10),
        )

    @on_fresh_ledger
    async def test_last_feedback_wins_whole(self, ledger: Ledger) -> None:
        await add_run(ledger, started())
        await rate(ledger, useful("good", seconds=10))
        await rate(ledger, Feedback("not_useful", None, at(20)))
        stored = await read_run(ledger, "s", "r")
        assert (stored.feedback, stored.feedback_comment) == ("not_useful", None)
        assert (stored.feedback_at, stored.updated_at) == (at(20), at(20))

    @on_fresh_ledger
    async def test_feedback_with_an_earlier_time_does_not_lower_updated_at(self, ledger: Ledger) -> None:
        await add_run(ledger, started(seconds=30))
        await rate(ledger, useful(seconds=10))
        stored = await read_run(ledger, "s", "r")
        assert (stored.feedback_at, stored.updated_at) == (at(10), at(30))

    @on_fresh_ledger
    async def test_feedback_without_a_time_leaves_updated_at(self, ledger: Ledger) -> None:
        before = await add_run(ledger, started())
        await rate(ledger, Feedback("useful", None, None))
        assert await read_run(ledger, "s", "r") == evolve(before, feedback="useful")

    @on_fresh_ledger
    async def test_feedback_on_a_running_run_leaves_it_running_and_leased(self, ledger: Ledger) -> None:
        before = await add_run(ledger, started())
        await rate(ledger, useful())
        stored = await read_run(ledger, "s", "r")
        assert stored == before.rated(useful())
        await end_run(ledger, answered(stored))

    @on_fresh_ledger
    async def test_feedback_on_one_run_leaves_the_others(self, ledger: Ledger) -> None:
        others = await add_runs(
            ledger, started("r-1", "s"), started("r-2", "s", seconds=9), started("r-3", "t")
        )
        await add_run(ledger, started("r", "s", seconds=5))
        await rate(ledger, useful())
        for other in others:
            assert await read_run(ledger, other.session_id, other.run_id) == other

    @pytest.mark.parametrize("run_id", ["unknown", "R", "r "])
    @on_fresh_ledger
    async def test_feedback_on_an_unknown_run_raises_and_nothing_changes(
        self, ledger: Ledger, run_id: str
    ) -> None:
        await add_run(ledger, started("r"))
        before = await picture(ledger)
        with pytest.raises(RunNotFound):
            await rate(ledger, useful(), run_id)
        assert await picture(ledger) == before
