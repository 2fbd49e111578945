"""Conversation metadata, chat responses, and trace details: the scenarios of the spec, one test each."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from support.scripted import Scripted, usual
from support.service import Backend, Running


def columns(here: Running, table: str) -> set[str]:
    assert here.database is not None
    with closing(sqlite3.connect(here.database)) as connection:
        return {row[1] for row in connection.execute(f"pragma table_info({table})")}


def test_valid_chat_execution_creates_session_metadata_and_a_run(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("what is firing", "s-1")
        trace = (await here.client.trace("s-1", made["runId"])).data
        assert trace["session"]["source"] == "chat_session" and trace["run"]["sessionId"] == "s-1"
        if here.has_rows:
            assert here.rows("select session_id from chat_session") == [{"session_id": "s-1"}]
            assert here.rows("select run_id, session_id from diagnosis_run") == [
                {"run_id": made["runId"], "session_id": "s-1"}
            ]

    backend.run(scenario)


def test_invalid_chat_request_does_not_create_a_run(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        reply = await here.client.post("/api/chat", {"sessionId": "s-1", "question": " "})
        assert reply.status == 400
        assert (await here.client.trace("s-1")).status == 404
        if here.has_rows:
            for table in ("diagnosis_run", "chat_session"):
                assert here.rows(f"select * from {table}") == []

    backend.run(scenario)


def test_chat_session_stores_metadata_only(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("an-unmistakable-question", "s-1")
        session = (await here.client.get("/api/chat/session/s-1")).data
        assert session["status"] == "ACTIVE" and session["messagePairCount"] == 1
        assert session["createdAt"] <= session["lastActiveAt"] < session["expiresAt"]
        if here.has_rows:
            (row,) = here.rows("select * from chat_session")
            assert {
                "status",
                "message_pair_count",
                "created_at",
                "last_active_at",
                "expires_at",
            } <= row.keys()
            assert not any(
                "unmistakable" in str(value) or made["answer"] in str(value) for value in row.values()
            )

    backend.run(scenario)


def test_chat_response_includes_run_id(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("what is firing")
        assert made["success"] is True and made["sessionId"] and made["runId"]
        assert (await here.client.trace(made["sessionId"], made["runId"])).data["runId"] == made["runId"]

    backend.run(scenario)


def test_multi_turn_chat_keeps_one_session_and_multiple_runs(backend: Backend) -> None:
    asked = Scripted(usual)

    async def scenario(here: Running) -> None:
        first = await here.client.ask("one", "s-1")
        second = await here.client.ask("two", "s-1")
        assert first["runId"] != second["runId"] and first["sessionId"] == second["sessionId"] == "s-1"
        (turn,) = asked.enquiries[1].conversation
        assert (turn.question, turn.answer) == ("one", first["answer"])
        if here.has_rows:
            assert here.rows("select run_id from diagnosis_run where session_id = 's-1' order by id") == [
                {"run_id": first["runId"]},
                {"run_id": second["runId"]},
            ]

    backend.run(scenario, asked)


def test_agent_steps_are_recorded_with_run_id(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("one", "s-1")
        assert len((await here.client.trace("s-1", made["runId"])).data["agentSteps"]) == 1
        if here.has_rows:
            assert here.rows("select run_id, session_id from agent_step") == [
                {"run_id": made["runId"], "session_id": "s-1"}
            ]

    backend.run(scenario)


def test_tool_invocations_are_recorded_with_run_id(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("one", "s-1")
        assert len((await here.client.trace("s-1", made["runId"])).data["toolInvocations"]) == 1
        if here.has_rows:
            assert here.rows("select run_id, session_id from tool_invocation") == [
                {"run_id": made["runId"], "session_id": "s-1"}
            ]

    backend.run(scenario)


def test_run_metrics_count_only_current_run_rows(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        chat = await here.client.ask("hello", "s-1")
        graph = await here.client.ask("why", "s-1")
        await here.client.stream("/api/ai_ops", {"sessionId": "s-1"})
        listed = {row["runId"]: row for row in (await here.client.runs("s-1")).data}
        for made, counts in ((chat, (1, 1)), (graph, (1, 2))):
            row = listed[made["runId"]]
            assert (row["stepCount"], row["toolCallCount"]) == counts
            trace = (await here.client.trace("s-1", made["runId"])).data
            assert (len(trace["agentSteps"]), len(trace["toolInvocations"])) == counts
            assert (trace["run"]["stepCount"], trace["run"]["toolCallCount"]) == counts

    backend.run(scenario)


def test_multi_turn_e2e_proves_run_isolation(backend: Backend) -> None:
    asked = Scripted(usual)

    async def scenario(here: Running) -> None:
        made = [await here.client.ask(question, "s-1") for question in ("first question", "second question")]
        for data, question in zip(made, ("first question", "second question"), strict=True):
            trace = (await here.client.trace("s-1", data["runId"])).data
            assert [step["input"] for step in trace["agentSteps"]] == [question]
            assert [tool["arguments"] for tool in trace["toolInvocations"]] == [{"q": question}]
            if here.has_rows:
                for table in ("agent_step", "tool_invocation"):
                    rows = here.rows(f"select session_id from {table} where run_id = ?", data["runId"])
                    assert rows == [{"session_id": "s-1"}]
        if here.has_rows:
            assert here.rows("select count(*) as runs from diagnosis_run where session_id = 's-1'") == [
                {"runs": 2}
            ]
        assert [pair.question for pair in asked.enquiries[1].conversation] == ["first question"]
        assert (await here.client.get("/api/chat/session/s-1")).data["messagePairCount"] == 2

    backend.run(scenario, asked)


def test_the_tables_of_details_hold_the_run(sqlite: Backend) -> None:
    async def scenario(here: Running) -> None:
        for table in ("agent_step", "tool_invocation"):
            assert {"run_id", "session_id"} <= columns(here, table)

    sqlite.run(scenario)
