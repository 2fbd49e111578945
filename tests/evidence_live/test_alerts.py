"""The alerts that fire, from Alertmanager and from Prometheus."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from evidence_live.answering import answering, success

from casenotes.adapters.evidence.live import AlertmanagerSource, PrometheusAlertsSource
from casenotes.core.text import bounded
from casenotes.ports.agent import ALERTS_TOOL, Lookup, Observation, ObservationStatus


def look(kind: type[AlertmanagerSource | PrometheusAlertsSource], given: Any) -> Observation:
    async def scene() -> Observation:
        async with answering(lambda _: given) as server:
            source = kind(server.upstream("Alertmanager"))
            try:
                assert await source.offer() == (Lookup(ALERTS_TOOL),)
                return await source.look(Lookup(ALERTS_TOOL))
            finally:
                await source.close()

    return asyncio.run(scene())


def alert(name: str, state: str = "active", **labels: str) -> dict[str, Any]:
    return {
        "labels": {"alertname": name, **labels},
        "annotations": {"description": f"{name} is on"},
        "startsAt": "2026-03-11T09:30:00Z",
        "endsAt": "2026-03-11T10:30:00Z",
        "status": {"state": state, "silencedBy": [], "inhibitedBy": []},
        "fingerprint": "f",
        "generatorURL": "http://user:s3cret@prometheus/graph",
        "receivers": [{"name": "x"}],
        "updatedAt": "2026-03-11T09:30:00Z",
    }


def test_alertmanagers_alerts_are_told_in_a_stable_order_without_what_no_report_needs() -> None:
    given = [alert("B", "suppressed"), alert("C", pod="2"), alert("C", pod="1"), "odd"]
    seen = look(AlertmanagerSource, given)
    assert isinstance(seen.result, list)
    told: list[Any] = seen.result
    assert [(one["labels"]["alertname"], one["labels"].get("pod")) for one in told] == [
        ("C", "1"),
        ("C", "2"),
        ("B", None),
    ]
    assert told[0].keys() == {"labels", "annotations", "startsAt", "endsAt", "status", "fingerprint"}
    assert look(AlertmanagerSource, given[::-1]) == seen


@pytest.mark.parametrize("kind", [AlertmanagerSource, PrometheusAlertsSource])
def test_nothing_that_fires_is_an_answer(kind: type[AlertmanagerSource | PrometheusAlertsSource]) -> None:
    given = [] if kind is AlertmanagerSource else success({"alerts": []})
    assert look(kind, given) == Observation(ObservationStatus.SUCCESS, [])


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (AlertmanagerSource, success([])),
        (PrometheusAlertsSource, []),
        (PrometheusAlertsSource, success([])),
        (PrometheusAlertsSource, success({"alerts": None})),
    ],
)
def test_an_answer_of_another_form_is_an_error(
    kind: type[AlertmanagerSource | PrometheusAlertsSource], given: Any
) -> None:
    assert look(kind, given).status is ObservationStatus.ERROR


def test_alerts_that_prometheus_holds_are_told_as_alertmanager_would_and_pending_ones_are_not() -> None:
    firing = {
        "labels": {"alertname": "A", "odd": 7},
        "annotations": {"summary": "x" * 500},
        "state": "firing",
        "activeAt": "2026-03-11T09:30:00Z",
        "value": "2.5e+02",
    }
    seen = look(PrometheusAlertsSource, success({"alerts": [firing, {**firing, "state": "pending"}, 7]}))
    assert seen.result == [
        {
            "labels": {"alertname": "A"},
            "annotations": {"summary": "x" * 399 + "…"},
            "endsAt": "0001-01-01T00:00:00Z",
            "status": {"state": "active", "silencedBy": [], "inhibitedBy": []},
            "startsAt": "2026-03-11T09:30:00Z",
            "value": "2.5e+02",
        }
    ]


def test_alerts_that_are_too_many_keep_one_of_each_name_and_the_rest_is_counted() -> None:
    many = [alert("Many", pod=f"p-{number}") for number in range(2000)]
    seen = look(AlertmanagerSource, [*many, alert("Rare")])
    assert isinstance(seen.result, list)
    told: list[Any] = seen.result
    assert told[-1]["labels"]["alertname"] == "Rare"
    assert not bounded(seen.result).truncated
    assert seen.left_out == f"{2001 - len(told)} of 2001 alerts left out for their size"
