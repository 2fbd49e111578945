"""Feedback: the scenarios of the spec, one test each."""

from __future__ import annotations

from support.service import Backend, Running


async def ratings(here: Running, session_id: str) -> dict[str, str | None]:
    """What each run of the session is rated."""
    found = {}
    for row in (await here.client.runs(session_id)).data:
        feedback = (await here.client.trace(session_id, row["runId"])).data["feedback"]
        found[row["runId"]] = feedback and feedback["rating"]
    return found


def test_feedback_with_run_id_updates_specified_run(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        first = await here.client.ask("one", "s-1")
        second = await here.client.ask("two", "s-1")
        reply = await here.client.rate("s-1", "not_useful", runId=first["runId"])
        assert reply.status == 200 and reply.data["success"] is True
        assert reply.data["runId"] == first["runId"] and reply.data["fallbackToLatestRun"] is False
        assert await ratings(here, "s-1") == {first["runId"]: "not_useful", second["runId"]: None}
        if here.has_rows:
            assert here.rows("select run_id, feedback from diagnosis_run order by id") == [
                {"run_id": first["runId"], "feedback": "not_useful"},
                {"run_id": second["runId"], "feedback": None},
            ]

    backend.run(scenario)


def test_feedback_without_run_id_falls_back_observably(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        first = await here.client.ask("one", "s-1")
        latest = await here.client.ask("two", "s-1")
        reply = await here.client.post("/api/feedback", {"sessionId": "s-1", "feedback": "not_useful"})
        assert reply.data["runId"] == latest["runId"] and reply.data["fallbackToLatestRun"] is True
        assert await ratings(here, "s-1") == {first["runId"]: None, latest["runId"]: "not_useful"}

    backend.run(scenario)


def test_historical_feedback_without_run_backed_data_remains_compatible(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.seed_history("s-old")
        reply = await here.client.rate("s-old", "useful")
        assert reply.status == 200 and reply.data["success"] is True
        assert reply.data["fallbackToLatestRun"] is False and "runId" not in reply.data
        assert (await here.client.trace("s-old")).data["feedback"]["rating"] == "useful"
        if here.has_rows:
            assert here.rows("select feedback from diagnosis_session") == [{"feedback": "useful"}]
            assert here.rows("select * from diagnosis_run") == []

    backend.run(scenario)


def test_feedback_rejects_run_from_another_session(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("mine", "s-1")
        theirs = await here.client.ask("theirs", "s-2")
        reply = await here.client.rate("s-1", runId=theirs["runId"])
        assert reply.status == 404 and reply.data["success"] is False
        assert reply.data["sessionId"] == "s-1" and reply.data["fallbackToLatestRun"] is False
        for session_id in ("s-1", "s-2"):
            assert set((await ratings(here, session_id)).values()) == {None}
        assert (await here.client.get("/api/cases")).data == []

    backend.run(scenario)


def test_useful_feedback_creates_case_from_run(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("one", "s-1")
        await here.client.ask("two", "s-1")
        first = await here.client.rate("s-1", runId=made["runId"])
        again = await here.client.rate("s-1", runId=made["runId"])
        assert first.data["caseId"] == again.data["caseId"]
        (case,) = (await here.client.get("/api/cases")).data
        assert case["diagnosisId"] == made["runId"] and case["caseId"] == first.data["caseId"]
        assert (case["query"], case["answer"]) == ("one", made["answer"])
        if here.has_rows:
            assert here.rows("select diagnosis_id, query, answer from case_library") == [
                {"diagnosis_id": made["runId"], "query": "one", "answer": made["answer"]}
            ]

    backend.run(scenario)
