"""The service over the real Prometheus and Alertmanager, with a rule that truly fires."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from evidence_live.components import ALERT, EXPRESSION, Monitoring, monitoring, until
from support.http import Client, client_of
from support.process import SERVE, service_process
from support.sse import answer_in

from casenotes.adapters.evidence.live import PrometheusSource, Upstream
from casenotes.core.text import JsonObject
from casenotes.ports.agent import About, Lookup, Observation, ObservationStatus

QUEUE = 250


async def report_of(client: Client) -> tuple[str, dict[str, Any]]:
    """A report asked for, and its trace."""
    events = await client.stream("/api/ai_ops", {"sessionId": "s-1"})
    assert events[0].type == "metadata" and events[-1].type == "done"
    trace = (await client.trace("s-1", events[0].payload["runId"])).data
    assert trace["answer"] == answer_in(events)
    return trace["answer"], trace


def judged_good(trace: dict[str, Any]) -> None:
    verdict = trace["selfEvaluation"]["aiops_rule_evaluation"]
    assert verdict["passed"] is True, verdict["summary"]


@pytest.mark.parametrize("with_alertmanager", [True, False])
def test_a_report_names_what_fires_and_its_real_value(tmp_path: Path, with_alertmanager: bool) -> None:
    here = tmp_path / "monitoring"
    here.mkdir()
    runbooks = tmp_path / "runbooks" / "shop"
    runbooks.mkdir(parents=True)
    (runbooks / f"{ALERT}.md").write_text("# Queue\n\n## Mitigation\n\nAdd workers.\n")
    with monitoring(here, QUEUE) as running:
        running.wait_until_it_fires()
        live = {"alertmanager_url": running.alertmanager} if with_alertmanager else {}
        settings = {"prometheus_url": running.prometheus, "runbooks": str(runbooks.parent), **live}
        with service_process(tmp_path, SERVE, **settings) as service:
            answer, trace = asyncio.run(_asked(service.url, report_of))
    (cited,) = [
        tool["sequence"]
        for tool in trace["toolInvocations"]
        if tool["toolName"] == "metrics.query" and tool["arguments"].get("alertname") == ALERT
    ]
    assert f"Alert `{ALERT}` is firing for `shop`" in answer
    assert f"`{EXPRESSION}`, is now {QUEUE} for `shop` [T{cited}]" in answer
    assert "tells to do: Add workers" in answer
    assert "checkout" not in answer, "the example pack must not be looked at"
    judged_good(trace)


def test_alertmanager_calls_the_webhook_and_a_group_that_fires_again_goes_on_in_its_session(
    tmp_path: Path,
) -> None:
    with service_process(tmp_path, SERVE) as before:
        port = before.url.rpartition(":")[2]
    here = tmp_path / "monitoring"
    here.mkdir()
    webhook = f"http://127.0.0.1:{port}/api/alerts/alertmanager"
    with monitoring(here, QUEUE, webhook) as running:
        serve = (*SERVE[:-1], port)
        with service_process(tmp_path, serve, prometheus_url=running.prometheus) as service:

            async def twice(client: Client) -> dict[str, Any]:
                return await _ran_twice(client, running)

            trace = asyncio.run(_asked(service.url, twice))
    assert trace["run"]["agentFlow"] == "AI_OPS"
    assert f"`{EXPRESSION}`, is now {QUEUE} for `shop`" in trace["answer"]
    judged_good(trace)


async def _ran_twice(client: Client, running: Monitoring) -> dict[str, Any]:
    """The trace of the latest of two runs that Alertmanager started in one session."""
    for _ in range(600):
        sessions = (await client.get("/api/sessions")).data
        if sessions and sessions[0]["runCount"] >= 2:
            (session,) = sessions
            assert session["sessionId"].startswith("alerts-")
            runs = (await client.runs(session["sessionId"])).data
            ended = [run for run in runs if run["status"] == "SUCCESS"]
            if len(ended) >= 2:
                trace: dict[str, Any] = (await client.trace(session["sessionId"], ended[0]["runId"])).data
                return trace
        await asyncio.sleep(0.1)
    raise AssertionError((running.folder / "prometheus-alertmanager.log").read_text())


async def _asked(url: str, act: Any) -> Any:
    async with client_of(url) as client:
        return await act(client)


def test_prometheus_itself_is_understood(tmp_path: Path) -> None:
    with monitoring(tmp_path, 7) as running:
        running.set_queue(90)
        until(lambda: running.value("shop_queue_length") == "90")

        async def scene() -> None:
            source = PrometheusSource(Upstream("Prometheus", running.prometheus))
            try:
                await _understood(source)
            finally:
                await source.close()

        asyncio.run(scene())


async def _understood(source: PrometheusSource) -> None:
    async def look(tool: str, **arguments: Any) -> Observation:
        return await source.look(Lookup(tool, arguments))

    wrong = await look("metrics.query", query="sum(")
    assert wrong.status is ObservationStatus.ERROR
    assert str(wrong.error_message).startswith("Prometheus answered 400: bad_data: ")
    assert (await look("metrics.query", query="no_such_metric")).status is ObservationStatus.NO_DATA
    finest = await look("metrics.query_range", query="shop_queue_length", minutes=10_000, step=1)
    assert finest.status is ObservationStatus.SUCCESS
    assert finest.left_out == "the step was raised from 1 s to 55 s"
    alert: JsonObject = {"labels": {"alertname": ALERT, "job": "shop"}, "startsAt": "2026-01-01T00:00:00Z"}
    offered = await source.offer_for(About("", (alert,)))
    assert [lookup.arguments["query"] for lookup in offered][:2] == [EXPRESSION, "shop_queue_length"]
    for lookup in offered:
        assert (await source.look(lookup)).status is not ObservationStatus.ERROR
