"""What can be read back, rated and erased."""

from __future__ import annotations

import asyncio

import pytest
from support.scripted import Scripted, raising, usual

import casenotes
from casenotes import AgentFlow, RunStatus


async def answered(notes: casenotes.Notes, question: str, session: str) -> str:
    async with notes.run(question, session=session) as run:
        run.answer(f"answer to {question}")
    return run.run_id


def test_runs_are_listed_newest_first_and_by_pages(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            ids = [await answered(notes, f"q{n}", "s") for n in range(5)]
            await answered(notes, "other", "t")
            everything = await notes.runs("s")
            first = await notes.runs("s", limit=2)
            rest = await notes.runs("s", before=first[-1].run_id)
            assert [run.run_id for run in everything] == ids[::-1]
            assert [run.run_id for run in (*first, *rest)] == ids[::-1]
            assert everything[0].answer_preview == "answer to q4"

    asyncio.run(scenario())


def test_a_trace_is_of_exactly_the_run_that_was_asked_for(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            first = await answered(notes, "q1", "s")
            second = await answered(notes, "q2", "s")
            assert (await notes.trace("s", first)).answer == "answer to q1"
            latest = await notes.trace("s")
            assert (latest.run_id, latest.session.message_pair_count) == (second, 2)
            await answered(notes, "q3", "t")
            with pytest.raises(casenotes.RunNotFound):
                await notes.trace("t", first)
            with pytest.raises(casenotes.SessionNotFound):
                await notes.trace("nowhere")

    asyncio.run(scenario())


def test_feedback_is_bound_to_the_run_named_or_to_the_latest(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            first = await answered(notes, "q1", "s")
            second = await answered(notes, "q2", "s")
            named = await notes.feedback("s", "useful", run_id=first, comment="right")
            latest = await notes.feedback("s", "not_useful")
            assert (named.run_id, named.fallback_to_latest_run) == (first, False)
            assert (latest.run_id, latest.fallback_to_latest_run) == (second, True)
            assert [case.diagnosis_id for case in await notes.cases()] == [first]
            with pytest.raises(casenotes.InvalidInput):
                await notes.feedback("s", "great")  # type: ignore[arg-type]

    asyncio.run(scenario())


def test_sessions_are_found_by_what_was_asked(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            await answered(notes, "why is checkout slow", "s")
            await answered(notes, "who deployed", "t")
            found = await notes.sessions("checkout")
            assert [(one.session.session_id, one.run_count) for one in found] == [("s", 1)]

    asyncio.run(scenario())


def test_an_erased_session_is_gone(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            await answered(notes, "q1", "s")
            await notes.feedback("s", "useful")
            erasure = await notes.erase("s")
            assert (erasure.runs, erasure.cases) == (1, 1)
            with pytest.raises(casenotes.SessionNotFound):
                await notes.runs("s")
            assert list(await notes.cases()) == []

    asyncio.run(scenario())


def test_a_diagnostician_answers_and_knows_what_was_recorded_before(url: str) -> None:
    async def scenario() -> None:
        diagnostician = Scripted(usual)
        async with casenotes.open(url, diagnostician=diagnostician) as notes:
            await answered(notes, "q1", "s")
            run = await notes.ask("q2", session="s", flow="chat")
            assert (run.status, run.agent_flow, run.session_id) == (RunStatus.SUCCESS, AgentFlow.CHAT, "s")
            (enquiry,) = diagnostician.enquiries
            assert [(pair.question, pair.answer) for pair in enquiry.conversation] == [("q1", "answer to q1")]

    asyncio.run(scenario())


def test_a_diagnostician_that_raises_gives_a_failed_run() -> None:
    async def scenario() -> None:
        diagnostician = Scripted(raising(RuntimeError("hunter2")))
        async with casenotes.open("memory://", diagnostician=diagnostician) as notes:
            run = await notes.ask("q")
            assert run.status is RunStatus.FAILED
            assert run.error_message is not None
            assert "hunter2" not in run.error_message

    asyncio.run(scenario())


def test_without_a_diagnostician_nobody_can_be_asked() -> None:
    async def scenario() -> None:
        async with casenotes.open("memory://") as notes:
            with pytest.raises(casenotes.InvalidSettings, match="diagnostician"):
                await notes.ask("q")

    asyncio.run(scenario())


@pytest.mark.parametrize("odd", ["\x00", "s\ud800"])
def test_an_id_that_no_store_can_hold_is_refused_everywhere_alike(url: str, odd: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            for refused in (
                notes.trace(odd),
                notes.trace("s", odd),
                notes.runs(odd),
                notes.runs("s", before=odd),
                notes.sessions(before=odd),
                notes.feedback(odd, "useful"),
                notes.feedback("s", "useful", run_id=odd),
                notes.erase(odd),
            ):
                with pytest.raises(casenotes.InvalidInput):
                    await refused
            with pytest.raises(casenotes.InvalidInput):
                notes.run("q", session=odd)
            assert list(await notes.sessions(odd)) == []
            assert list(await notes.cases(odd)) == []

    asyncio.run(scenario())
