"""Prometheus: what is asked of it, how its answers are bounded, and which lookups are offered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
from evidence_live.answering import Answering, Asked, answering, matrix, success, vector

from casenotes.adapters.evidence.live import PrometheusSource
from casenotes.adapters.evidence.reducing import MAX_BYTES, MAX_SAMPLES, MAX_SERIES
from casenotes.core.text import JsonObject, bounded, json_text
from casenotes.ports.agent import About, Lookup, Observation, ObservationStatus

NOW = datetime(2026, 3, 11, 10, 0, tzinfo=UTC)
T = TypeVar("T")
RANGE = "metrics.query_range"
INSTANT = "metrics.query"


def look(answer: Callable[[Asked], Any], lookup: Lookup) -> tuple[Observation, list[Asked]]:
    async def scene(server: Answering, source: PrometheusSource) -> Observation:
        return await source.look(lookup)

    return play(answer, scene)


def play(
    answer: Callable[[Asked], Any], scene: Callable[[Answering, PrometheusSource], Awaitable[T]]
) -> tuple[T, list[Asked]]:
    async def played() -> tuple[T, list[Asked]]:
        async with answering(answer) as server:
            source = PrometheusSource(server.upstream(), lambda: NOW)
            try:
                return await scene(server, source), server.asked
            finally:
                await source.close()

    return asyncio.run(played())


def result_of(seen: Observation) -> dict[str, Any]:
    assert isinstance(seen.result, dict)
    return seen.result


def test_an_instant_query_is_posted_as_a_form() -> None:
    long = "up" + " + up" * 5000
    seen, (asked,) = look(lambda _: vector(({"job": "a"}, "1")), Lookup(INSTANT, {"query": long}))
    assert (asked.method, asked.path, asked.fields) == ("POST", "/api/v1/query", {"query": long})
    assert seen.status is ObservationStatus.SUCCESS
    assert result_of(seen)["data"]["result"][0]["value"][1] == "1"


def test_a_range_query_looks_back_an_hour_in_half_minutes() -> None:
    seen, (asked,) = look(lambda _: matrix(({}, ["1", "NaN"])), Lookup(RANGE, {"metric": "up"}))
    assert asked.path == "/api/v1/query_range"
    assert asked.fields == {
        "query": "up",
        "start": f"{NOW.timestamp() - 3600:.3f}",
        "end": f"{NOW.timestamp():.3f}",
        "step": "30",
    }
    assert result_of(seen)["end"] == "2026-03-11T10:00:00Z"


def test_a_step_that_gives_too_many_points_is_raised_and_said_so() -> None:
    arguments: JsonObject = {"query": "up", "minutes": 10080, "step": 1, "end": "2026-03-11T09:00:00Z"}
    seen, (asked,) = look(lambda _: matrix(({}, ["1"])), Lookup(RANGE, arguments))
    start, end, step = (float(asked.fields[name]) for name in ("start", "end", "step"))
    assert (end - start) / step + 1 <= 11_000
    assert end == NOW.timestamp() - 3600
    assert seen.left_out == "the step was raised from 1 s to 55 s"
    assert result_of(seen)["leftOut"] == seen.left_out


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": " "},
        {"query": 1},
        {"query": "up", "minutes": 0},
        {"query": "up", "minutes": "60"},
        {"query": "up", "minutes": True},
        {"query": "up", "minutes": 1e9},
        {"query": "up", "step": -1},
        {"query": "up", "end": "yesterday"},
        {"query": "up", "end": "2026-03-11T10:00:00"},
    ],
)
def test_wrong_arguments_are_an_error_and_nothing_is_asked(arguments: JsonObject) -> None:
    seen, asked = look(lambda _: matrix(), Lookup(RANGE, arguments))
    assert seen.status is ObservationStatus.ERROR and seen.error_message
    assert asked == []


def test_no_series_is_no_data() -> None:
    assert look(lambda _: vector(), Lookup(INSTANT, {"query": "up"}))[0].status is ObservationStatus.NO_DATA
    assert look(lambda _: matrix(), Lookup(RANGE, {"query": "up"}))[0].status is ObservationStatus.NO_DATA


def test_a_scalar_is_an_answer_and_warnings_are_kept() -> None:
    scalar = success({"resultType": "scalar", "result": [1, "2"]})
    seen, _ = look(lambda _: scalar, Lookup(INSTANT, {"query": "2"}))
    assert result_of(seen)["data"]["result"] == [1, "2"]
    warned = {**vector(({}, "1")), "warnings": ["password=s3cret", 7]}
    seen, _ = look(lambda _: warned, Lookup(INSTANT, {"query": "up"}))
    assert result_of(seen)["warnings"] == ["password=[redacted:password]"]


def test_a_large_answer_is_reduced_to_what_the_record_keeps_whole_and_says_how() -> None:
    still = [({"pod": f"still-{number}"}, ["1"] * 1000) for number in range(60)]
    moving = ({"pod": "moving"}, ["1"] * 500 + ["90"] * 500)
    seen, _ = look(lambda _: matrix(*still, moving), Lookup(RANGE, {"query": "x"}))
    series = result_of(seen)["data"]["result"]
    assert len(series) == MAX_SERIES and series[-1]["metric"] == {"pod": "moving"}
    assert series[-1]["values"][-1] == [1_700_000_000 + 30 * 999, "90"]
    assert len(json_text(result_of(seen)).encode()) <= MAX_BYTES + 1000
    assert not bounded(seen.result).truncated
    assert seen.left_out is not None
    assert seen.left_out.startswith("20 of 61 series kept, those that moved most; one of every ")


def test_long_labels_cannot_make_an_answer_too_large() -> None:
    wide = [({"label": "x" * 30_000, "at": str(number)}, "1") for number in range(MAX_SAMPLES + 5)]
    seen, _ = look(lambda _: vector(*wide), Lookup(INSTANT, {"query": "x"}))
    assert not bounded(seen.result).truncated
    assert seen.left_out == "60 of 65 series kept, the first ones; 59 more series left out for their size"


def alert(name: str, **labels: str) -> JsonObject:
    named: JsonObject = {"alertname": name, **labels}
    return {"labels": named, "annotations": {}, "startsAt": "2026-03-11T09:30:00Z"}


def rule(name: str, query: str, **labels: str) -> dict[str, Any]:
    return {"type": "alerting", "name": name, "query": query, "labels": labels}


def shop(asked: Asked) -> Any:
    """A Prometheus with a shop."""
    match asked.path.removeprefix("/api/v1/"), asked.fields.get("match[]"):
        case "rules", _:
            rules = [
                rule("Slow", 'rate(http_request_duration_seconds_sum{a="{"}[5m]) > 0.5', severity="page"),
                rule("Slow", "other > 1", severity="ticket"),
                rule("Else", "1 > 0"),
                {"type": "recording", "name": "Slow", "query": "no"},
            ]
            return success({"groups": [{"rules": rules}, {"rules": None}, 7]})
        case "label/service/values", _:
            return success(["checkout", "cart"])
        case "label/__name__/values", '{service="checkout"}':
            names = ["http_requests_total", "http_latency_seconds_bucket", "queue_length", "go_goroutines"]
            return success([*names, "shop_orders", "http_latency_seconds_sum"])
        case "label/__name__/values", '{instance="a:9100"}':
            return success(["node_cpu_seconds_total", "node_load1", "node_memory_MemTotal_bytes"])
    return success([])


def offered(about: About, answer: Callable[[Asked], Any] = shop) -> list[Lookup]:
    async def scene(_: Answering, source: PrometheusSource) -> list[Lookup]:
        return [*await source.offer(), *await source.offer_for(about)]

    found, _ = play(answer, scene)
    return found


def test_an_alerts_own_expression_is_offered_now_and_over_time() -> None:
    up, *rest = offered(About("", (alert("Slow", severity="page"),)))
    assert up == Lookup(INSTANT, {"metric": "up", "query": "sort(up)"})
    query = 'rate(http_request_duration_seconds_sum{a="{"}[5m])'
    assert rest == [
        Lookup(INSTANT, {"alertname": "Slow", "query": f"{query} > 0.5"}),
        Lookup(
            RANGE,
            {"alertname": "Slow", "metric": "http_request_duration_sum", "query": query, "minutes": 60},
        ),
    ]


def test_an_alert_that_began_long_ago_is_looked_at_from_before_it_began() -> None:
    old: JsonObject = {**alert("Slow", severity="ticket"), "startsAt": "2026-03-11T00:00:00Z"}
    lookup = offered(About("", (old,)))[-1]
    assert lookup.arguments["query"] == "other"
    assert lookup.arguments["minutes"] == 900


def test_metrics_of_what_the_question_names_are_offered() -> None:
    found = offered(About("why has checkout so many orders?"))[1:]
    assert [lookup.arguments["query"] for lookup in found] == [
        'shop_orders{service="checkout"}',
        "histogram_quantile(0.9, sum by (le, service) "
        '(rate(http_latency_seconds_bucket{service="checkout"}[5m])))',
        'sum by (service) (rate(http_requests_total{service="checkout"}[5m]))',
        'queue_length{service="checkout"}',
    ]
    assert all(lookup.arguments["service"] == "checkout" for lookup in found)


def test_a_machines_well_known_metrics_are_offered_where_it_has_them() -> None:
    found = offered(About("", (alert("Load", instance="a:9100"),)))[1:]
    assert [lookup.arguments["metric"] for lookup in found] == ["cpu_usage_percent", "node_load1"]
    assert 'mode="idle",instance="a:9100"' in str(found[0].arguments["query"])


def test_what_is_offered_is_bounded() -> None:
    def large(asked: Asked) -> Any:
        if asked.path.endswith("__name__/values"):
            return success([f"errors_{number}" for number in range(5000)])
        return shop(asked)

    alerts = tuple(alert(f"Alert{number}", pod=f"pod-{number}") for number in range(500))
    assert len(offered(About("", alerts), large)) <= 60


@pytest.mark.parametrize(
    "data", [None, 7, {}, [], {"groups": 3}, {"groups": [{"rules": [{"type": "alerting"}]}]}]
)
def test_discovery_that_fails_leaves_the_lookup_that_says_why(data: object) -> None:
    about = About("is checkout ok?", (alert("Slow", service="checkout"),))
    assert len(offered(about, lambda _: success(data))) == 1


def test_label_values_are_quoted() -> None:
    def odd(asked: Asked) -> Any:
        return success(["errors"]) if asked.path.endswith("__name__/values") else success([])

    (_, lookup) = offered(About("", (alert("A", pod='x"} or up{a="\\\n'),)), odd)
    assert lookup.arguments["query"] == 'errors{pod="x\\"} or up{a=\\"\\\\\\n"}'
