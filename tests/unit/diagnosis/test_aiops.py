"""Reports over firing alerts."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.diagnosis.asking import NOW, Recorded, Run, alert, ask, firing

from casenotes.adapters.agents.aiops import MAX_GROUPS
from casenotes.adapters.agents.alerts import AlertState, read_alerts
from casenotes.core.text import Json, JsonObject
from casenotes.core.words import AgentFlow, StepStatus
from casenotes.ports.agent import ALERTS_TOOL, RUNBOOK_TOOL, Progress


def report(*sources: Recorded, alerts: tuple[JsonObject, ...] | None = None) -> Run:
    run = ask("", AgentFlow.AI_OPS, *sources, alerts=alerts)
    assert run.calls[0].tool_name == ALERTS_TOOL
    assert run.trace is None
    return run


def sections(answer: str) -> dict[str, str]:
    parts = answer.split("\n## ")[1:]
    return {part.partition("\n")[0]: part for part in parts}


def test_each_firing_alert_has_a_section_with_findings_gaps_and_an_action() -> None:
    run = report()
    told = sections(run.answer)
    assert list(told) == [
        "RecommendationCPUHigh in shop",
        "CheckoutLatencyHigh in shop",
        "PaymentConnectionsWaiting in shop",
    ]
    for title, text in told.items():
        assert f"Alert `{title.split()[0]}` is firing" in text
        assert "**Evidence gaps**" in text
        assert "**Next action**" in text
    assert "`DB_POOL_MAX_SIZE`" in told["CheckoutLatencyHigh in shop"]
    assert "Set `DB_POOL_MAX_SIZE` of `payment` back to `40`" in told["CheckoutLatencyHigh in shop"]
    assert sum(isinstance(event, Progress) for event in run.events) == 4


def test_a_runbook_is_looked_for_for_every_alert_and_its_absence_is_said() -> None:
    run = report(
        Recorded(
            firing(alert("A", service="x"), alert("B", service="y")),
            (RUNBOOK_TOOL, {"alertname": "A"}, "# A\n\n## Mitigation\n\nWait.\n"),
        )
    )
    asked = [call.arguments["alertname"] for call in run.calls if call.tool_name == RUNBOOK_TOOL]
    assert asked == ["A", "B"]
    told = sections(run.answer)
    assert "The runbook for A tells to do: Wait [T2]" in told["A"]
    assert "Follow the runbook [T2]" in told["A"]
    assert "Not found: a runbook for `B` [T3]" in told["B"]


def test_no_firing_alert_is_a_short_honest_report() -> None:
    for run in (report(Recorded(firing())), report(alerts=())):
        assert run.answer == "# Alert report\n\nNo alert is firing [T1]. There is nothing to investigate.\n"
        assert len(run.calls) == 1
        assert not run.degraded


def test_alerts_that_cannot_be_read_are_told() -> None:
    run = report(Recorded(failing=[ALERTS_TOOL]))
    assert "could not be read: it is down [T1]" in run.answer
    assert run.calls[0].status is StepStatus.FAILED
    assert run.degraded


def test_given_alerts_are_taken_and_the_source_is_not_asked() -> None:
    source = Recorded(firing(alert("Other")))
    run = report(source, alerts=(alert("Given", service="x"),))
    assert run.calls[0].result == [alert("Given", service="x")]
    assert "Given" in run.answer
    assert "Other" not in run.answer
    assert ALERTS_TOOL not in [lookup.tool for lookup in source.asked]


def test_suppressed_and_resolved_alerts_are_told_apart() -> None:
    quiet: JsonObject = {**alert("Silenced"), "status": {"state": "suppressed"}}
    over: JsonObject = {**alert("Over"), "endsAt": "2026-03-11T09:59:59Z"}
    later: JsonObject = {**alert("Lasting"), "endsAt": "2026-03-11T10:05:00Z"}
    answer = report(Recorded(), alerts=(quiet, over, later)).answer
    assert "1 alert is firing [T1]" in answer
    assert "Suppressed, not investigated: `Silenced`" in answer
    assert "Resolved, not investigated: `Over`" in answer
    assert "## Lasting" in answer


def test_alerts_of_one_name_and_namespace_share_a_section() -> None:
    alerts = tuple(alert("Slow", service=f"s{number}", namespace="a") for number in range(30))
    answer = report(Recorded(), alerts=alerts).answer
    assert answer.count("\n## ") == 1
    assert "And 20 more of them [T1]" in answer


def test_groups_past_the_bound_are_named_and_not_looked_into() -> None:
    alerts = tuple(alert(f"Kind{number}") for number in range(MAX_GROUPS + 2))
    run = report(Recorded(), alerts=alerts)
    told = sections(run.answer)
    assert list(told) == [f"Kind{number}" for number in range(MAX_GROUPS + 2)]
    assert "Not investigated" in told[f"Kind{MAX_GROUPS}"]


def test_what_one_alert_looked_at_serves_the_next() -> None:
    source = Recorded(
        firing(alert("A", service="web"), alert("B", service="web")),
        ("kubectl_logs", {"pod": "web-0"}, "ERROR no space left on device"),
    )
    run = report(source)
    assert [call.tool_name for call in run.calls].count("kubectl_logs") == 1
    assert all("no space left on device" in text for text in sections(run.answer).values())


ODD: list[Json] = [
    None,
    3,
    "alert",
    {},
    {"labels": None},
    {"labels": [1]},
    {"labels": {"alertname": None}},
    {"labels": {"alertname": 7, "service": {"a": 1}}},
    {
        "labels": {"alertname": "X\n## forged"},
        "annotations": "none",
        "startsAt": 5,
        "endsAt": [],
        "status": 9,
    },
    {"labels": {"alertname": "`x`"}, "startsAt": "9999-12-31T23:59:59-23:59", "status": {"state": None}},
]


@pytest.mark.parametrize("odd", ODD)
def test_odd_alerts_do_not_fail_a_report(odd: Json) -> None:
    given_alerts = (odd,) if isinstance(odd, dict) else ()
    report(Recorded(("kubectl_logs", {"pod": "x"}, "ERROR y")), alerts=given_alerts)
    report(Recorded((ALERTS_TOOL, {}, [odd])))
    report(Recorded((ALERTS_TOOL, {}, odd)))


def test_a_forged_heading_stays_in_its_line() -> None:
    answer = report(Recorded(), alerts=(alert("X\n## forged"),)).answer
    assert "\n## forged" not in answer


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
ALERT = st.fixed_dictionaries(
    {}, optional={key: JSON for key in ("labels", "annotations", "startsAt", "endsAt", "status")}
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ALERT, max_size=4))
def test_any_alerts_are_survived(alerts: list[dict[str, object]]) -> None:
    report(Recorded(), alerts=tuple(json.loads(json.dumps(alerts))))


@pytest.mark.parametrize(
    ("alert", "state"),
    [
        ({}, AlertState.FIRING),
        ({"status": {"state": "active"}}, AlertState.FIRING),
        ({"status": "firing"}, AlertState.FIRING),
        ({"status": {"state": "suppressed"}}, AlertState.SUPPRESSED),
        ({"endsAt": "0001-01-01T00:00:00Z"}, AlertState.FIRING),
        ({"endsAt": "2020-01-01T00:00:00Z", "status": {"state": "active"}}, AlertState.RESOLVED),
        ({"endsAt": "2020-01-01T00:00:00"}, AlertState.FIRING),
        ({"status": "resolved"}, AlertState.RESOLVED),
        ({"status": {"state": "a new word"}}, AlertState.FIRING),
    ],
)
def test_whether_an_alert_fires(alert: JsonObject, state: AlertState) -> None:
    (read,) = read_alerts([alert], NOW)
    assert read.state is state


@pytest.mark.parametrize(
    ("labels", "subjects"),
    [
        ({"deployment": "web", "pod": "web-0"}, ("web", "web-0")),
        ({"job": "kube-state-metrics", "pod": "x-kube-state-metrics-0", "deployment": "web"}, ("web",)),
        ({"job": "kube-state-metrics", "pod": "web-0"}, ("web-0",)),
        ({"job": "node-exporter", "instance": "10.0.0.1:9100"}, ("10.0.0.1:9100",)),
        ({"job": "nightly", "node": "n1"}, ("nightly",)),
        ({"job": "node", "instance": "a:9100"}, ("a:9100",)),
        ({"job": "shop", "instance": "a:9100"}, ("shop",)),
        ({"severity": "warning", "node": "n1"}, ("n1",)),
        ({}, ()),
    ],
)
def test_whom_an_alert_is_about(labels: JsonObject, subjects: tuple[str, ...]) -> None:
    (read,) = read_alerts([{"labels": {"alertname": "A", **labels}}], NOW)
    assert read.subjects == subjects
