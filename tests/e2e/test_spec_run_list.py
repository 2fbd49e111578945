"""The list of a session's runs: the scenarios of the spec, one test each."""

from __future__ import annotations

from support.service import Backend, Running

FIELDS = [
    "runId",
    "sessionId",
    "query",
    "status",
    "agentFlow",
    "answerPreview",
    "stepCount",
    "toolCallCount",
    "createdAt",
    "updatedAt",
]


def test_run_list_returns_summaries(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = [await here.client.ask(question, "s-1") for question in ("one", "why two")]
        reply = await here.client.runs("s-1")
        assert reply.status == 200 and reply.json["code"] == 200 and reply.message == "success"
        assert [row["runId"] for row in reply.data] == [data["runId"] for data in reversed(made)]
        assert all(list(row) == FIELDS for row in reply.data)
        newest = reply.data[0]
        assert (newest["query"], newest["status"], newest["agentFlow"]) == (
            "why two",
            "SUCCESS",
            "STATE_GRAPH",
        )
        for detail in ("agentSteps", "toolInvocations", "RAW-TOOL-OUTPUT", "SECRET-REASONING"):
            assert detail.encode() not in reply.body

    backend.run(scenario)


def test_run_list_handles_session_without_runs(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.seed_session("s-empty")
        reply = await here.client.runs("s-empty")
        assert reply.status == 200 and reply.data == []

    backend.run(scenario)


def test_run_list_rejects_missing_session(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.seed_history("s-old")
        for session_id in ("s-none", "s-old"):
            reply = await here.client.runs(session_id)
            assert reply.status == 404 and reply.message == f"session not found: {session_id}"

    backend.run(scenario)
