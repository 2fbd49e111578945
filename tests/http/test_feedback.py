from __future__ import annotations

import asyncio

from support.scripted import Gate, Scripted
from support.service import Backend, Running


def test_the_last_word_wins_and_the_case_follows_it(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("q", "s-1")
        first = (await here.client.rate("s-1", runId=made["runId"], comment="yes")).data
        assert list(first) == ["success", "sessionId", "runId", "fallbackToLatestRun", "feedback", "caseId"]
        (case,) = (await here.client.get("/api/cases")).data
        assert case["caseId"] == first["caseId"] and case["diagnosisId"] == made["runId"]

        withdrawn = (await here.client.rate("s-1", "not_useful", runId=made["runId"])).data
        assert withdrawn["feedback"] == "not_useful" and withdrawn["caseId"] is None
        assert (await here.client.get("/api/cases")).data == []
        trace = (await here.client.trace("s-1")).data
        assert trace["feedback"]["rating"] == "not_useful" and trace["feedback"]["comment"] is None

        assert (await here.client.rate("s-1", runId=made["runId"])).data["caseId"] == first["caseId"]
        assert len((await here.client.get("/api/cases")).data) == 1

    backend.run(scenario)


def test_many_feedbacks_at_once_make_one_case(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("q", "s-1")
        replies = await asyncio.gather(*(here.client.rate("s-1") for _ in range(20)))
        assert len({reply.data["caseId"] for reply in replies}) == 1
        assert len((await here.client.get("/api/cases")).data) == 1

    backend.run(scenario)


def test_a_null_run_id_means_the_latest(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("one", "s-1")
        latest = await here.client.ask("two", "s-1")
        data = (await here.client.rate("s-1", runId=None)).data
        assert data["runId"] == latest["runId"] and data["fallbackToLatestRun"] is True

    backend.run(scenario)


def test_feedback_on_nothing_fails_in_the_agreed_shape(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        reply = await here.client.rate("s-none")
        assert reply.status == 404
        assert reply.data == {
            "success": False,
            "errorMessage": "session not found: s-none",
            "sessionId": "s-none",
            "fallbackToLatestRun": False,
        }

    backend.run(scenario)


def test_feedback_on_history_names_no_run(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.seed_history("s-old")
        reply = await here.client.rate("s-old", "not_useful", comment="stale")
        assert reply.status == 200 and "runId" not in reply.data
        assert reply.data["fallbackToLatestRun"] is False and reply.data["caseId"] is None
        feedback = (await here.client.trace("s-old")).data["feedback"]
        assert (feedback["rating"], feedback["comment"]) == ("not_useful", "stale")

    backend.run(scenario)


def test_feedback_on_a_running_run_makes_its_case_at_the_end(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        async with here.client.streaming("/api/chat_stream", {"sessionId": "s-1", "question": "q"}) as (
            _,
            events,
        ):
            await anext(events)
            assert (await here.client.rate("s-1")).data["caseId"] is None
            gate.opened.set()
            assert [event.type async for event in events][-1] == "done"
        assert len((await here.client.get("/api/cases")).data) == 1

    gate = Gate()
    backend.run(scenario, Scripted(gate))
