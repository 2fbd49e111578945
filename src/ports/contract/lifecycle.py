"""The end of a run: stored whole, once, and for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
from attrs import evolve

from casenotes.core.errors import InvalidTransition, RunNotFound
from casenotes.core.model import DiagnosisRun, RunMetrics
from casenotes.core.words import AgentFlow, RunStatus
from casenotes.ports.contract.stage import (
    add_run,
    add_runs,
    answered,
    at,
    case_of,
    chat_session,
    committed,
    end,
    end_run,
    on_fresh_ledger,
    only,
    picture,
    put_cases,
    read_run,
    read_session,
    started,
    useful,
)
from casenotes.ports.ledger import Ledger


def succeeded(run: DiagnosisRun) -> DiagnosisRun:
    return run.succeed(
        "the pool is exhausted",
        at(5),
        RunMetrics(2, 3),
        degraded=True,
        self_evaluation={"score": 0.5},
        orchestration_trace={"version": 1, "transitions": [{"from": "START", "to": "planner"}]},
    )


def failed(run: DiagnosisRun) -> DiagnosisRun:
    return run.fail(
        "the model took too long",
        at(6),
        RunMetrics(1, 0),
        self_evaluation={"score": 0},
        orchestration_trace={"version": 1, "transitions": []},
    )


Ended: TypeAlias = Callable[[DiagnosisRun], DiagnosisRun]
ENDINGS = pytest.mark.parametrize("ended", [succeeded, failed])


class LifecycleContract:
    @ENDINGS
    @on_fresh_ledger
    async def test_end_stores_everything_the_run_ended_with(self, ledger: Ledger, ended: Ended) -> None:
        running = await add_run(ledger, started())
        sealed = await end_run(ledger, ended(running))
        stored = await read_run(ledger, "s", "r")
        assert stored == sealed
        assert stored.status in {RunStatus.SUCCESS, RunStatus.FAILED}
        assert (stored.lease_owner, stored.lease_expires_at) == (None, None), "the lease is not gone"

    @on_fresh_ledger
    async def test_run_read_back_can_be_ended_by_the_model(self, ledger: Ledger) -> None:
        await add_run(ledger, started())
        await end_run(ledger, answered(await read_run(ledger, "s", "r")))
        stored = await read_run(ledger, "s", "r")
        with pytest.raises(InvalidTransition):
            answered(stored)

    @ENDINGS
    @on_fresh_ledger
    async def test_ended_run_cannot_end_again_and_nothing_changes(self, ledger: Ledger, ended: Ended) -> None:
        running = await add_run(ledger, started())
        await end_run(ledger, ended(running))
        before = await picture(ledger)
        for again in (answered(running, "another answer", seconds=9), failed(running)):
            with pytest.raises(InvalidTransition):
                await end_run(ledger, again)
            assert await picture(ledger) == before

    @pytest.mark.parametrize(("session_id", "run_id"), [("s", "unknown"), ("t", "r"), ("unknown", "r")])
    @on_fresh_ledger
    async def test_end_of_a_run_that_is_not_there_raises_and_nothing_changes(
        self, ledger: Ledger, session_id: str, run_id: str
    ) -> None:
        [running, _] = await add_runs(ledger, started("r", "s"), started("r-t", "t"))
        before = await picture(ledger, "s"), await picture(ledger, "t")
        with pytest.raises(RunNotFound):
            await end_run(ledger, evolve(answered(running), session_id=session_id, run_id=run_id))
        assert (await picture(ledger, "s"), await picture(ledger, "t")) == before

    @on_fresh_ledger
    async def test_end_leaves_feedback_and_case_as_they_are(self, ledger: Ledger) -> None:
        running = await add_run(ledger, started())
        case = only(await put_cases(ledger, case_of("r")))
        async with committed(ledger) as work:
            await work.runs.set_feedback("s", "r", useful("good", seconds=1))
        await end_run(ledger, answered(running))
        stored = await read_run(ledger, "s", "r")
        assert (stored.feedback, stored.feedback_comment, stored.feedback_at) == ("useful", "good", at(1))
        async with ledger.view() as view:
            assert await view.cases.of_run("r") == case

    @on_fresh_ledger
    async def test_end_leaves_what_the_executor_did_not_know_as_it_is(self, ledger: Ledger) -> None:
        running = await add_run(ledger, started())
        async with committed(ledger) as work:
            await work.runs.set_context_degraded("s", "r")
        await end_run(ledger, answered(running))
        assert (await read_run(ledger, "s", "r")).context_degraded

    @on_fresh_ledger
    async def test_end_raises_last_active_at_and_sets_expires_at_unless_it_is_none(
        self, ledger: Ledger
    ) -> None:
        runs = await add_runs(ledger, *(started(f"r-{n}") for n in range(4)), started("r-t", "t"))
        for run, ended_at, expires_at, active, expires in (
            (runs[0], 7, at(70), at(7), at(70)),
            (runs[1], 4, at(40), at(7), at(40)),
            (runs[2], 9, None, at(9), at(40)),
            (runs[3], 5, at(90), at(9), at(90)),
        ):
            async with committed(ledger) as work:
                await end(work, run.fail("no", at(ended_at), RunMetrics(0, 0)), expires_at=expires_at)
            touched = evolve(chat_session(), last_active_at=active, expires_at=expires)
            assert await read_session(ledger, "s") == touched
        assert await read_session(ledger, "t") == chat_session("t"), "another session was touched"

    @on_fresh_ledger
    async def test_only_an_answered_turn_counts_a_message_pair(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, *(started(f"r-{n}") for n in range(3)))
        aiops = await add_run(ledger, evolve(started("r-aiops"), agent_flow=AgentFlow.AI_OPS))
        for ended, count in (
            (answered(runs[0]), 1),
            (runs[1].fail("no", at(5), RunMetrics(0, 0)), 1),
            (answered(aiops), 1),
            (answered(runs[2]), 2),
        ):
            await end_run(ledger, ended)
            assert (await read_session(ledger, "s")).message_pair_count == count

    @on_fresh_ledger
    async def test_end_touches_no_other_run(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, started("r-1", "s"), started("r-2", "s"), started("r-3", "t"))
        await end_run(ledger, answered(runs[0]))
        for other in runs[1:]:
            assert await read_run(ledger, other.session_id, other.run_id) == other

    @ENDINGS
    @on_fresh_ledger
    async def test_ended_run_takes_no_more_steps(self, ledger: Ledger, ended: Ended) -> None:
        running = await add_run(ledger, started())
        await end_run(ledger, ended(running))
        before = await picture(ledger)
        with pytest.raises(InvalidTransition):
            async with committed(ledger) as work:
                await work.journal.add_step(running.step(1, "planner", at(7)))
        assert await picture(ledger) == before

    @ENDINGS
    @on_fresh_ledger
    async def test_ended_run_takes_no_more_tool_calls(self, ledger: Ledger, ended: Ended) -> None:
        running = await add_run(ledger, started())
        await end_run(ledger, ended(running))
        before = await picture(ledger)
        with pytest.raises(InvalidTransition):
            async with committed(ledger) as work:
                await work.journal.add_tool(running.tool_call(1, "logs.search", at(7)))
        assert await picture(ledger) == before

    @on_fresh_ledger
    async def test_run_ended_in_this_very_unit_of_work_takes_no_more_steps(self, ledger: Ledger) -> None:
        running = await add_run(ledger, started())
        with pytest.raises(InvalidTransition):
            async with committed(ledger) as work:
                await end(work, answered(running))
                await work.journal.add_step(running.step(1, "planner", at(7)))
        assert await read_run(ledger, "s", "r") == running
