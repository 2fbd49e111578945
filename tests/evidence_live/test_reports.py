"""Reports over live sources of which some fail: what is known is told, and what is missing is said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from attrs import evolve
from evidence_live.answering import Answer, Asked, answering, matrix, silence, success, vector

from casenotes.adapters.agents import EmbeddedDiagnostician
from casenotes.adapters.evidence.live import AlertmanagerSource, PrometheusSource, Upstream
from casenotes.core.words import AgentFlow
from casenotes.ports.agent import Answered, Chunk, Enquiry, ToolCalled

ALERT = {
    "labels": {"alertname": "QueueLong", "service": "shop"},
    "annotations": {"description": "orders wait"},
    "startsAt": "2026-03-11T09:30:00Z",
    "endsAt": "9999-01-01T00:00:00Z",
    "status": {"state": "active"},
}


def reported(
    alertmanager: Answer, prometheus: Answer, timeout: float = 5
) -> tuple[str, list[ToolCalled], bool]:
    """The report, its calls, and whether it is degraded."""

    async def scene() -> tuple[str, list[ToolCalled], bool]:
        async with answering(alertmanager) as alerts, answering(prometheus) as metrics:
            guarded = metrics.url.replace("://", "://user:s3cret@")
            diagnostician = EmbeddedDiagnostician(
                [
                    AlertmanagerSource(alerts.upstream("Alertmanager")),
                    PrometheusSource(Upstream("Prometheus", guarded, timeout)),
                ]
            )
            try:
                enquiry = Enquiry("s-1", "run-1", "report", AgentFlow.AI_OPS)
                events = [event async for event in diagnostician.diagnose(enquiry)]
            finally:
                await diagnostician.close()
        text = "".join(event.text for event in events if isinstance(event, Chunk))
        calls = [evolve(event, duration_ms=0) for event in events if isinstance(event, ToolCalled)]
        (last,) = [event for event in events if isinstance(event, Answered)]
        return text, calls, last.degraded

    text, calls, degraded = asyncio.run(scene())
    assert "s3cret" not in text + repr(calls)
    assert "127.0.0.1" not in text + repr(calls)
    return text, calls, degraded


def firing(_: Asked) -> Any:
    return [ALERT]


def working(asked: Asked) -> Any:
    """A Prometheus whose queue grew."""
    match asked.path:
        case "/api/v1/rules":
            rule = {"type": "alerting", "name": "QueueLong", "query": "queue_length > 10"}
            return success({"groups": [{"rules": [rule]}]})
        case "/api/v1/query" if asked.fields["query"] == "queue_length > 10":
            return vector(({"service": "shop"}, "250"))
        case "/api/v1/query":
            return vector(({"service": "shop"}, "1"))
        case "/api/v1/query_range":
            return matrix(({"service": "shop"}, ["4"] * 20 + ["250"] * 10))
    return success([])


def test_a_level_that_moved_is_put_forward_and_the_value_of_now_is_told() -> None:
    report, calls, degraded = reported(firing, working)
    assert "`queue_length > 10`, is now 250 for `shop` [T3]." in report
    assert (
        "**The evidence points to this:** Queue length of `shop` rose from 4 to 250 (62.5 times its usual level)"
        in report
    )
    assert [call.tool_name for call in calls] == [
        "alerts.firing",
        "runbooks.find",
        "metrics.query",
        "metrics.query_range",
        "metrics.query",
    ]
    assert not degraded


def test_the_same_evidence_is_recorded_in_the_same_order() -> None:
    assert reported(firing, working) == reported(firing, working)


@pytest.mark.parametrize(
    ("prometheus", "words"),
    [
        (lambda _: web.json_response(status=503), "Prometheus answered 503"),
        (silence, "Prometheus did not answer within 0.2 s"),
        (lambda _: web.Response(text="<html>", content_type="text/html"), "text/html that is no JSON"),
    ],
)
def test_a_prometheus_that_fails_is_a_gap_of_a_report_that_goes_on(prometheus: Answer, words: str) -> None:
    report, _, degraded = reported(firing, prometheus, timeout=0.2)
    assert "Alert `QueueLong` is firing for `shop`" in report
    gaps = report.partition("**Evidence gaps**")[2]
    assert "Failed: `metrics.query(metric=up, query=sort(up))`" in gaps and words in gaps
    assert not degraded


def test_alerts_that_cannot_be_read_are_not_taken_for_none() -> None:
    report, _, degraded = reported(lambda _: web.json_response(status=500), working)
    assert (
        report == "# Alert report\n\nThe firing alerts could not be read: Alertmanager answered 500 [T1].\n"
    )
    assert degraded
