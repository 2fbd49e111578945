"""Values of now, series of one owner, and what a source left out."""

from __future__ import annotations

from typing import Any

import pytest
from unit.diagnosis.asking import Recorded, Run, alert, ask, firing

from casenotes.adapters.agents.findings.owners import owners
from casenotes.adapters.agents.findings.series import series_findings
from casenotes.adapters.agents.findings.values import shown, value_findings
from casenotes.core.text import Json, JsonObject
from casenotes.core.words import AgentFlow
from casenotes.ports.agent import Lookup, Observation, ObservationStatus

EXPRESSION: JsonObject = {"alertname": "QueueLong", "query": "queue > 10"}


def vector(*series: tuple[dict[str, str], str]) -> dict[str, Any]:
    result = [{"metric": labels, "value": [1.0, value]} for labels, value in series]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def texts(arguments: JsonObject, *series: tuple[dict[str, str], str]) -> list[str]:
    return [finding.text for finding in value_findings(arguments, vector(*series))]


def report(result: dict[str, Any]) -> Run:
    source = Recorded(firing(alert("QueueLong", service="shop")), ("metrics.query", EXPRESSION, result))
    return ask("", AgentFlow.AI_OPS, source)


def test_a_report_names_what_an_alerts_own_expression_gives_now() -> None:
    answer = report(vector(({"service": "shop"}, "250"))).answer
    assert "The expression of alert `QueueLong`, `queue > 10`, is now 250 for `shop` [T3]." in answer
    assert answer.count("is now 250") == 1
    assert "Not found: any finding" not in answer


@pytest.mark.parametrize("flow", [AgentFlow.CHAT, AgentFlow.STATE_GRAPH])
def test_so_does_an_answer(flow: AgentFlow) -> None:
    source = Recorded(
        firing(alert("QueueLong", service="shop")),
        ("metrics.query", EXPRESSION, vector(({"service": "shop"}, "0.125"))),
    )
    run = ask("why is the queue of shop long?", flow, source)
    assert run.answer.count("is now 0.125 for `shop` [T2].") == 1
    assert not run.degraded


def test_many_values_are_told_by_their_range() -> None:
    told = texts(EXPRESSION, *(({"pod": f"p-{number}"}, str(number)) for number in range(9)))
    assert len(told) == 6
    assert told[-1].endswith("is now a number for 9 series, from 0 to 8")


def test_targets_that_cannot_be_scraped_are_told_and_the_rest_is_cleared() -> None:
    up: JsonObject = {"metric": "up", "query": "sort(up)"}
    a, b = {"job": "shop", "instance": "a:1"}, {"job": "shop", "instance": "b:1"}
    assert texts(up, (a, "0"), (b, "1")) == ["`shop` (instance `a:1`) cannot be scraped: `up` is 0"]
    assert texts(up, (a, "1"), (b, "1")) == ["All 2 targets seen can be scraped"]
    assert texts(up, (a, "1")) == ["The 1 target seen can be scraped"]


@pytest.mark.parametrize(
    "result",
    [
        {"data": {"resultType": "vector", "result": None}},
        {"data": {"resultType": "vector", "result": [None, 7, {"value": []}, {"value": [1, "x"]}]}},
        {"data": {"resultType": "vector", "result": [{"metric": [], "value": [1, "NaN"]}]}},
    ],
)
def test_odd_answers_are_survived(result: dict[str, Any]) -> None:
    asked: list[JsonObject] = [EXPRESSION, {"metric": "up"}, {}]
    for arguments in asked:
        value_findings(arguments, result)


@pytest.mark.parametrize(
    ("value", "text"),
    [(250.0, "250"), (0.1234567, "0.123457"), (-3.0, "-3"), (1e20, "1e+20"), (float("nan"), "nan")],
)
def test_values_are_shown_as_a_person_would(value: float, text: str) -> None:
    assert shown(value) == text


def test_series_of_one_owner_are_told_apart_by_what_differs() -> None:
    told = owners(
        [
            {"job": "shop", "instance": "a:1", "mode": "idle"},
            {"job": "shop", "instance": "b:1", "mode": "idle"},
            {"job": "other", "instance": "b:1"},
            {"__name__": "x"},
            {"__name__": "y"},
        ]
    )
    assert [owner.told for owner in told] == [
        "`shop` (instance `a:1`)",
        "`shop` (instance `b:1`)",
        "`other`",
        "",
        "#2",
    ]
    assert [owner.subject for owner in told] == ["shop", "shop", "other", "", ""]


def test_a_machine_goes_by_its_instance_and_not_by_the_job_that_scrapes_all_machines() -> None:
    (owner,) = owners([{"job": "node", "instance": "a:9100", "mountpoint": "/"}])
    assert (owner.subject, owner.told) == ("a:9100", "`a:9100`")
    source = Recorded(
        firing(alert("DiskFull", job="node", instance="a:9100")),
        (
            "metrics.query",
            {"metric": "up", "query": "sort(up)"},
            vector(
                ({"job": "node", "instance": "b:9100"}, "0"), ({"job": "node", "instance": "a:9100"}, "1")
            ),
        ),
    )
    answer = ask("", AgentFlow.AI_OPS, source).answer
    assert "The evidence points to" not in answer
    assert "- `b:9100` cannot be scraped: `up` is 0 [T3]. Not taken for the cause" in answer


def test_words_are_told_as_they_are() -> None:
    series: list[Json] = [{"metric": {}, "values": [[1, "7"]]}]
    answer: JsonObject = {"data": {"resultType": "matrix", "result": series}}
    (finding,) = series_findings("expression of QueueLong", answer)
    assert finding.text.startswith("Expression of QueueLong is 7; ")


def test_too_few_points_are_not_called_usual() -> None:
    series: list[Json] = [{"metric": {"pod": "a"}, "values": [[1, "7"], [2, "NaN"]]}]
    (finding,) = series_findings("queue_length", {"data": {"resultType": "matrix", "result": series}})
    assert finding.text == "Queue length of `a` is 7; 1 point cannot tell whether that is usual"


def test_an_answer_says_what_a_source_left_out() -> None:
    class Cutting(Recorded):
        async def look(self, lookup: Lookup) -> Observation:
            seen = await super().look(lookup)
            left_out = "3 of 9 series left out" if seen.status is ObservationStatus.SUCCESS else None
            return Observation(seen.status, seen.result, left_out=left_out)

    source = Cutting(firing(alert("A", service="web")), ("kubectl_logs", {"pod": "web-0"}, "ERROR no space"))
    answer = ask("why does web fail?", AgentFlow.CHAT, source).answer
    assert "- Not whole: `kubectl_logs(pod=web-0)`: 3 of 9 series left out [T2]." in answer
    report = ask("", AgentFlow.AI_OPS, source).answer
    assert "1 alert is firing [T1]. Not all of them were read: 3 of 9 series left out." in report
