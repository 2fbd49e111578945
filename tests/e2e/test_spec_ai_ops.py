"""AIOps executions: the scenarios of the spec, one test each."""

from __future__ import annotations

import json

from support.service import Backend, Running
from support.sse import answer_in


def test_aiops_creates_run(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("before", "s-1")
        events = await here.client.stream("/api/ai_ops", {"sessionId": "s-1"})
        run_id = events[0].payload["runId"]
        trace = (await here.client.trace("s-1", run_id)).data
        assert trace["run"]["agentFlow"] == "AI_OPS" and trace["run"]["status"] == "SUCCESS"
        assert [step["agentName"] for step in trace["agentSteps"]] == ["operator"]
        assert [tool["toolName"] for tool in trace["toolInvocations"]] == ["alerts.firing", "runbooks.find"]
        verdict = trace["selfEvaluation"]["aiops_rule_evaluation"]
        assert verdict["version"] == 1 and verdict["passed"] is True and verdict["score"] == 1
        if here.has_rows:
            (row,) = here.rows(
                "select agent_flow, self_evaluation from diagnosis_run where run_id = ?", run_id
            )
            assert row["agent_flow"] == "AI_OPS"
            assert json.loads(row["self_evaluation"])["aiops_rule_evaluation"] == verdict
            for table, count in (("agent_step", 1), ("tool_invocation", 2)):
                assert len(here.rows(f"select 1 from {table} where run_id = ?", run_id)) == count

    backend.run(scenario)


def test_aiops_sse_exposes_run_id(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        events = await here.client.stream("/api/ai_ops")
        assert {event.name for event in events} == {"message"}
        first, *rest = events
        assert first.type == "metadata" and first.data.startswith('{"type":"metadata",')
        assert first.payload.keys() == {"sessionId", "runId"}
        assert "metadata" not in {event.type for event in rest}
        content = [event for event in rest if event.type == "content"]
        assert content and all(event.object.keys() == {"type", "data"} for event in content)
        trace = (await here.client.trace(first.payload["sessionId"], first.payload["runId"])).data
        assert trace["answer"] == answer_in(events)

    backend.run(scenario)
