"""The orchestration trace: the scenarios of the spec, one test each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from support.scripted import Gate, Scripted, fallback, raising_in_graph
from support.service import Backend, Running

NODES = {"planner", "executor", "evidence_check", "composer", "fallback"}


async def orchestration(here: Running, run_id: str) -> dict[str, Any]:
    found = (await here.client.trace("s-1", run_id)).data["run"]["orchestrationTrace"]
    assert isinstance(found, dict)
    return found


def moves(found: dict[str, Any]) -> list[str]:
    return [move["to"] for move in found["transitions"]]


def test_graph_reaches_composer(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("why", "s-1")
        found = await orchestration(here, made["runId"])
        assert found.keys() == {
            "version",
            "transitions",
            "finalNode",
            "terminationReason",
            "degraded",
            "evidenceRetryCount",
        }
        assert found["transitions"][0] == {"from": "START", "to": "planner"}
        assert moves(found) == [
            "planner",
            "executor",
            "evidence_check",
            "executor",
            "evidence_check",
            "composer",
        ]
        assert (found["finalNode"], found["terminationReason"]) == ("composer", "COMPOSED")
        assert (found["degraded"], found["evidenceRetryCount"]) == (False, 1)

    backend.run(scenario)


def test_graph_reaches_handled_fallback(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("why", "s-1")
        assert made["status"] == "SUCCESS" and made["degraded"] is True
        found = await orchestration(here, made["runId"])
        assert found["degraded"] is True and found["finalNode"] == "fallback" and found["transitions"]
        assert found["terminationReason"] == "EVIDENCE_EXHAUSTED"

    backend.run(scenario, Scripted(fallback))


def test_unhandled_execution_fails_after_events_exist(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("why", "s-1")
        assert made["status"] == "FAILED"
        found = await orchestration(here, made["runId"])
        assert moves(found) == ["planner", "executor"]
        assert (found["finalNode"], found["terminationReason"], found["degraded"]) == (
            "executor",
            "ERROR",
            False,
        )

    backend.run(scenario, Scripted(raising_in_graph))


def test_orchestration_trace_content_is_inspected(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        other = await here.client.ask("why another-question", "s-1")
        made = await here.client.ask("why this-question", "s-1")
        for data in (made, other):
            found = await orchestration(here, data["runId"])
            words = {move[end] for move in found["transitions"] for end in ("from", "to")}
            assert words <= NODES | {"START"}
            for leak in (
                "question",
                "SECRET-REASONING",
                "RAW-TOOL-OUTPUT",
                made["runId"],
                other["runId"],
                "pool",
            ):
                assert leak not in str(found)
        if here.has_rows:
            for row in here.rows("select orchestration_trace from diagnosis_run"):
                assert (
                    "SECRET" not in row["orchestration_trace"]
                    and "question" not in row["orchestration_trace"]
                )

    backend.run(scenario)


def test_exact_state_graph_run_trace_is_queried(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("why", "s-1")
        reply = await here.client.trace("s-1", made["runId"])
        assert reply.data["run"]["orchestrationTrace"]["transitions"]
        assert "orchestrationTrace" not in reply.data and "orchestrationTrace" not in reply.data["session"]
        assert reply.body.count(b"orchestration") == 1

    backend.run(scenario)


def test_historical_or_non_state_graph_run_is_queried(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("why", "s-1")
        chat = await here.client.ask("hello", "s-1")
        assert (await here.client.trace("s-1", chat["runId"])).data["run"]["orchestrationTrace"] is None
        events = await here.client.stream("/api/ai_ops", {"sessionId": "s-1"})
        aiops = await here.client.trace("s-1", events[0].payload["runId"])
        assert aiops.data["run"]["orchestrationTrace"] is None
        await here.seed_history("s-old")
        assert (await here.client.trace("s-old")).data["run"] is None

    backend.run(scenario)


def test_a_graph_that_fails_before_its_first_node_has_no_trace(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("why", "s-1")
        assert made["status"] == "FAILED"
        assert (await here.client.trace("s-1", made["runId"])).data["run"]["orchestrationTrace"] is None

    backend.run(scenario, Scripted(Gate()), run_timeout=timedelta(seconds=0.1))
