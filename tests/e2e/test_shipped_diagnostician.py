"""The service as it ships: its own diagnostician, over the incident pack of the package."""

from __future__ import annotations

import re

import pytest
from support.service import Backend, Running
from support.sse import answer_in

from casenotes.entrypoints.bootstrap import embedded_diagnostician


@pytest.mark.parametrize("flow", ["chat", "graph"])
def test_a_chat_cites_calls_that_were_made(backend: Backend, flow: str) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("why is checkout slow?", "s-1", flow=flow)
        assert made["success"] is True and made["degraded"] is False
        trace = (await here.client.trace("s-1", made["runId"])).data
        cited = {int(number) for number in re.findall(r"\[T(\d+)\]", made["answer"])}
        assert cited and cited <= {tool["sequence"] for tool in trace["toolInvocations"]}
        assert (trace["run"]["orchestrationTrace"] is None) == (flow == "chat")
        graph = trace["run"]["orchestrationTrace"] or {"evidenceRetryCount": 0}
        found = trace["selfEvaluation"]
        assert found["citations"]["valid"] is True and found["degraded"] is False
        assert found["evidence"] == {
            "toolCalls": len(trace["toolInvocations"]),
            "failed": sum(tool["status"] == "FAILED" for tool in trace["toolInvocations"]),
            "retries": graph["evidenceRetryCount"],
            "coverage": 1.0,
        }

    backend.run(scenario, embedded_diagnostician(backend.settings))


def test_a_report_treats_each_firing_alert(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        events = await here.client.stream("/api/ai_ops", {"sessionId": "s-1"})
        assert events[-1].type == "done"
        trace = (await here.client.trace("s-1", events[0].payload["runId"])).data
        assert trace["answer"] == answer_in(events)
        verdict = trace["selfEvaluation"]["aiops_rule_evaluation"]
        assert verdict["passed"] is True, verdict["summary"]

    backend.run(scenario, embedded_diagnostician(backend.settings))
