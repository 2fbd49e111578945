"""Feedback is on one run, and decides whether it is a case."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from unit.service.scene import play, scene

from casenotes.core.errors import RunNotFound
from casenotes.core.service.stream import Order
from casenotes.core.words import AgentFlow
from casenotes.ports.agent import AgentEvent, Answered, Enquiry


def test_useful_feedback_given_while_a_run_is_running_makes_its_case_when_it_ends() -> None:
    async def act() -> None:
        go = asyncio.Event()

        async def waits(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
            await go.wait()
            yield Answered("Pool exhausted.")

        s = scene(waits)
        execution = await s.service.executions.submit(Order("s-1", "Why?", AgentFlow.CHAT))
        receipt = await s.service.feedback.give("s-1", "useful", run_id=execution.run.run_id)
        assert receipt.case_id is None
        go.set()
        await execution.outcome()
        (case,) = await s.service.reading.cases()
        assert (case.diagnosis_id, case.answer) == (execution.run.run_id, "Pool exhausted.")

    play(act)


def test_the_last_feedback_decides_on_the_one_case_of_a_run() -> None:
    async def act() -> None:
        s = scene()
        run = await s.ask()
        first = await s.service.feedback.give("s-1", "useful")
        assert (first.run_id, first.fallback_to_latest_run) == (run.run_id, True)
        await s.service.feedback.give("s-1", "not_useful", run_id=run.run_id)
        assert list(await s.service.reading.cases()) == []
        again = await s.service.feedback.give("s-1", "useful", run_id=run.run_id)
        assert (again.case_id, again.fallback_to_latest_run) == (first.case_id, False)
        assert [case.id for case in await s.service.reading.cases()] == [first.case_id]

    play(act)


def test_feedback_for_a_run_of_another_session_changes_neither() -> None:
    async def act() -> None:
        s = scene()
        foreign = await s.ask(session_id="s-2")
        own = await s.ask(session_id="s-1")
        with pytest.raises(RunNotFound):
            await s.service.feedback.give("s-1", "useful", run_id=foreign.run_id)
        for session_id, run in (("s-1", own), ("s-2", foreign)):
            assert (await s.service.reading.trace(session_id, run.run_id)).feedback is None

    play(act)
