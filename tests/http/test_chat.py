from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from support.scripted import Gate, Scripted, fallback, playing, raising, telling, usual
from support.service import Backend, Running

from casenotes.core.words import AgentFlow, StepStatus
from casenotes.ports.agent import Answered, Chunk, StepTaken, ToolCalled


def test_an_answer_has_exactly_the_agreed_fields(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        data = await here.client.ask("what is firing", "s-1")
        assert list(data) == [
            "success",
            "answer",
            "errorMessage",
            "sessionId",
            "runId",
            "status",
            "agentFlow",
            "degraded",
            "contextDegraded",
        ]
        assert data["success"] is True and data["errorMessage"] is None and data["status"] == "SUCCESS"
        assert data["answer"] == "Found it:\nthree lines [T1] for what is firing"
        assert data["sessionId"] == "s-1" and data["runId"].startswith("run-")

    backend.run(scenario)


def test_without_a_session_id_each_request_gets_a_fresh_one(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = set()
        for body in ({}, {"sessionId": None}, {"sessionId": ""}, {"sessionId": "  "}):
            reply = await here.client.post("/api/chat", {"question": "hello", **body})
            made.add(reply.data["sessionId"])
        assert len(made) == 4 and all(one.startswith("chat-") for one in made)

    backend.run(scenario)


def test_the_aliases_of_fields_are_understood(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        for name in ("sessionId", "Id", "id", "ID"):
            for asked in ("question", "Question", "QUESTION"):
                reply = await here.client.post("/api/chat", {name: "s-alias", asked: "hello"})
                assert reply.data["sessionId"] == "s-alias" and reply.data["answer"].endswith("hello")

    backend.run(scenario)


def test_unknown_fields_are_ignored_and_a_run_id_in_the_body_too(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        first = await here.client.ask("one", "s-1")
        second = await here.client.ask("two", "s-1", runId=first["runId"], colour="red")
        assert second["runId"] != first["runId"]

    backend.run(scenario)


def test_the_flow_is_routed_or_chosen(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        asked: list[tuple[str, dict[str, Any], str]] = [
            ("hello", {}, "CHAT"),
            ("why is checkout slow?", {}, "STATE_GRAPH"),
            ("why is checkout slow?", {"flow": "chat"}, "CHAT"),
            ("hello", {"flow": "graph"}, "STATE_GRAPH"),
            ("hello", {"flow": None}, "CHAT"),
        ]
        for question, more, flow in asked:
            assert (await here.client.ask(question, **more))["agentFlow"] == flow

    memory.run(scenario)


def test_a_failed_execution_is_an_answered_request(backend: Backend) -> None:
    fault = RuntimeError("password=hunter2 at 10.0.0.1")
    broken = Scripted(raising(fault, StepTaken("planner"), ToolCalled("logs.search", result="x")))

    async def scenario(here: Running) -> None:
        data = await here.client.ask("what", "s-1")
        assert data["success"] is False and data["answer"] is None and data["status"] == "FAILED"
        assert data["errorMessage"] == "an internal fault ended the run"
        trace = (await here.client.trace("s-1", data["runId"])).data
        assert trace["run"]["status"] == "FAILED" and trace["run"]["errorMessage"] == data["errorMessage"]
        assert [len(trace["agentSteps"]), len(trace["toolInvocations"])] == [1, 1]
        assert [trace["run"]["stepCount"], trace["run"]["toolCallCount"]] == [1, 1]

    backend.run(scenario, broken)


def test_a_run_past_its_time_out_is_failed_and_keeps_what_had_happened(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        data = await here.client.ask("why does it hang", "s-1")
        assert data["success"] is False and data["errorMessage"] == "the run took longer than 0.2 s"
        trace = (await here.client.trace("s-1")).data
        assert trace["runId"] == data["runId"] and len(trace["agentSteps"]) == 1

    backend.run(scenario, Scripted(Gate(StepTaken("planner"))), run_timeout=timedelta(seconds=0.2))


def test_a_degraded_answer_is_a_success(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        data = await here.client.ask("why", "s-1")
        assert data["success"] is True and data["degraded"] is True and data["status"] == "SUCCESS"

    backend.run(scenario, Scripted(fallback))


def test_a_citation_of_a_call_that_was_not_made_is_replaced_and_counted(backend: Backend) -> None:
    script = playing(ToolCalled("logs.search"), Chunk("seen [T1], and [T9] too\n"))

    async def scenario(here: Running) -> None:
        data = await here.client.ask("what", "s-1")
        assert data["answer"] == "seen [T1], and [unsupported] too\n" and data["degraded"] is False
        trace = (await here.client.trace("s-1")).data
        assert trace["selfEvaluation"]["citations"] == {"cited": 1, "unsupported": 1, "valid": False}

    backend.run(scenario, Scripted(script))


def test_secrets_are_redacted_wherever_they_come_from(backend: Backend) -> None:
    secret = "hunter2-hunter2"
    script = playing(
        StepTaken("a", input=f"password={secret}", output=f"pwd={secret}", error_message=f"secret={secret}"),
        ToolCalled(
            "t",
            {"password": secret, "dsn": f"postgres://u:{secret}@db/x"},
            {"token": secret},
            status=StepStatus.FAILED,
            error_message=f"Authorization: Bearer {secret}",
        ),
        Chunk("the password"),
        Chunk("=hunter2-"),
        Chunk("hunter2\n"),
    )

    async def scenario(here: Running) -> None:
        data = await here.client.ask(f"why does password={secret} not work", "s-1")
        assert secret not in str(data)
        await here.client.rate("s-1", comment=f"password={secret}")
        for path in (
            "/api/diagnosis/s-1/trace",
            "/api/chat/session/s-1/runs",
            "/api/sessions",
            "/api/cases",
        ):
            body = (await here.client.get(path)).body.decode()
            assert secret not in body and "[redacted:" in body, path

    backend.run(scenario, Scripted(script))


def test_overlapping_first_messages_of_one_session_make_one_session_and_a_run_each(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        answers = await asyncio.gather(*(here.client.ask(f"q{n}", "s-new") for n in range(20)))
        assert len({data["runId"] for data in answers}) == 20
        session = (await here.client.get("/api/chat/session/s-new")).data
        assert session["messagePairCount"] == 20
        listed = (await here.client.runs("s-new")).data
        assert {run["runId"] for run in listed} == {data["runId"] for data in answers}

    backend.run(scenario)


def test_a_client_that_goes_away_does_not_stop_the_run(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        asking = asyncio.create_task(here.client.ask("are you there", "s-1"))
        await gate.reached.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        gate.opened.set()
        await here.quiet()
        (run,) = (await here.client.runs("s-1")).data
        assert (
            run["status"] == "SUCCESS"
            and run["answerPreview"] == "Found it: three lines [T1] for are you there"
        )

    gate = Gate()
    backend.run(scenario, Scripted(gate))


def test_more_executions_than_allowed_are_told_to_come_again(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        first = asyncio.create_task(here.client.ask("one", "s-1"))
        await gate.reached.wait()
        refused = await here.client.post("/api/chat", {"sessionId": "s-2", "question": "two"})
        assert refused.status == 503 and int(refused.headers["Retry-After"]) > 0
        assert (await here.client.trace("s-2")).status == 404
        gate.opened.set()
        assert (await first)["success"] is True

    gate = Gate()
    backend.run(scenario, Scripted(gate), max_running=1)


def test_earlier_turns_are_carried_into_the_next_and_cleared_on_request(backend: Backend) -> None:
    asked = Scripted(usual)

    async def scenario(here: Running) -> None:
        await here.client.ask("one", "s-1")
        await here.client.ask("two", "s-1")
        assert [pair.question for pair in asked.enquiries[1].conversation] == ["one"]
        cleared = await here.client.post("/api/chat/clear", {"sessionId": "s-1"})
        assert cleared.status == 200 and cleared.data == {"sessionId": "s-1"}
        await here.client.ask("three", "s-1")
        assert asked.enquiries[2].conversation == ()
        assert (await here.client.get("/api/chat/session/s-1")).data["messagePairCount"] == 3
        assert len((await here.client.runs("s-1")).data) == 3

    backend.run(scenario, asked)


def test_a_conversation_store_that_is_away_degrades_the_answer_only(sqlite: Backend) -> None:
    asked = Scripted(usual)

    async def scenario(here: Running) -> None:
        data = await here.client.ask("one", "s-1")
        assert data["success"] is True and data["contextDegraded"] is True and data["degraded"] is False
        assert asked.enquiries[0].flow is AgentFlow.CHAT
        ready = await here.client.get("/readyz")
        assert ready.status == 200 and ready.data == {"ledger": "ready", "context": "unavailable"}
        assert (await here.client.post("/api/chat/clear", {"sessionId": "s-1"})).status == 503
        assert (await here.client.delete("/api/chat/session/s-1")).status == 503
        assert (await here.client.trace("s-1", data["runId"])).status == 200

    sqlite.run(scenario, asked, context_url="sqlite:////proc/nowhere/context.db")


def test_an_answer_in_one_piece_is_stored_as_it_was_given(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        data = await here.client.ask("what", "s-1")
        assert data["answer"] == text
        assert (await here.client.trace("s-1")).data["answer"] == text

    text = "a\r\nb\rc\u2028d\u0085e\n\nevent: x\ndata: y\n\N{SNOWMAN}\U0001f600 "
    backend.run(scenario, Scripted(playing(Answered(text))))
    backend.run(scenario, Scripted(telling(text, pieces_of=1)))
