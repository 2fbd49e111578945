"""Comparing baselines: what counts as a drift, and as better or worse."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from baseline.making import ONE, one, report
from hypothesis import given
from hypothesis import strategies as st

from casenotes.core.baseline.diff import Comparison, Verdict, compare
from casenotes.core.baseline.expectations import Expectation
from casenotes.core.baseline.metrics import METRICS
from casenotes.core.baseline.report import BaselineReport, InvalidBaseline, Judged, Measures, Unreadable

TWO = evolve(ONE, id="two", folder="two")


def drifts(old: BaselineReport, new: BaselineReport) -> dict[str, Verdict]:
    return {drift.metric: drift.verdict for drift in compare(old, new).drifts}


@pytest.mark.parametrize(
    ("changed", "metric"),
    [
        (
            {"facts": (Judged("the disk is full", ("disk", "full"), False), ONE.facts[1])},
            "fact: the disk is full",
        ),
        ({"decoys": (Judged("it is DNS", ("DNS",), True),)}, "decoy: it is DNS"),
        ({"rules": {"alerts_read": False, "gaps_declared": False}}, "rule: alerts_read"),
        ({"error": "the run took longer than 1 s"}, "succeeded"),
        ({"degraded": True}, "degraded"),
        ({"citations_valid": False}, "citations.valid"),
        ({"unsupported": 1}, "citations.unsupported"),
        ({"cited": 2}, "citations.cited"),
        ({"uncited": 1}, "statements.uncited"),
        ({"answer_chars": 7000}, "answerChars"),
        ({"evidence": {"logs/a.log": "sha256:a"}}, "evidence.parts"),
        ({"failed_tools": 1}, "tools.failed"),
        ({"tools": 14}, "tools.all"),
        ({"steps": 9}, "steps"),
        ({"input_tokens": 20_000}, "tokens.input"),
        ({"output_tokens": 3000}, "tokens.output"),
        ({"duration_ms": 90_000}, "durationMs"),
    ],
)
def test_each_metric_is_told_when_it_gets_worse_and_when_it_gets_better(
    changed: dict[str, Any], metric: str
) -> None:
    worse = report(one(**changed))
    assert drifts(report(), worse) == {metric: Verdict.REGRESSED}
    assert drifts(worse, report()) == {metric: Verdict.IMPROVED}
    assert not compare(report(), worse).is_clean
    assert compare(worse, report()).is_clean


@pytest.mark.parametrize(
    "changed",
    [
        {"cited": 5},
        {"answer_chars": 3900},
        {"tools": 11},
        {"steps": 6},
        {"input_tokens": 10_900},
        {"output_tokens": 1300},
        {"duration_ms": 29_000},
        {"run_id": "run-2", "session_id": "baseline-2", "started_at": "2027-01-01T00:00:00.000Z"},
    ],
)
def test_noise_is_no_drift(changed: dict[str, Any]) -> None:
    assert drifts(report(), report(one(**changed))) == {}
    assert drifts(report(one(**changed)), report()) == {}


def test_every_metric_is_in_the_table_above() -> None:
    mark = test_each_metric_is_told_when_it_gets_worse_and_when_it_gets_better.pytestmark[0]
    assert {metric.name for metric in METRICS} <= {name for _, name in mark.args[1]}


def test_added_and_removed_incidents_are_listed_apart() -> None:
    found = compare(report(ONE), report(ONE, TWO))
    assert (found.added, found.removed, found.drifts) == (("two",), (), ())
    found = compare(report(ONE, TWO), report(ONE))
    assert (found.added, found.removed, found.drifts) == ((), ("two",), ())


def test_what_differs_in_a_pack_is_marked_and_its_drift_counts() -> None:
    new = one(
        question="Why now?",
        flow="CHAT",
        facts=(*ONE.facts, Judged("it rains", ("rain",), False)),
        decoys=(),
        evidence={"logs/a.log": "sha256:other", "logs/c.log": "sha256:c"},
        degraded=True,
    )
    found = compare(report(), report(new))
    assert found.marks == {
        "one": (
            "question changed",
            "flow changed",
            "facts changed",
            "decoys changed",
            "evidence logs/a.log changed",
            "evidence logs/b.log removed",
            "evidence logs/c.log added",
        )
    }
    assert [drift.metric for drift in found.drifts] == ["degraded"]


def test_an_incident_that_cannot_be_read_any_more_has_regressed() -> None:
    broken = report(TWO, unreadable=(Unreadable("one", "incident.json: missing"),))
    found = compare(report(ONE, TWO), broken)
    assert [(drift.incident, drift.metric) for drift in found.of(Verdict.REGRESSED)] == [("one", "readable")]
    assert found.removed == ()
    assert [drift.verdict for drift in compare(broken, report(ONE, TWO)).drifts] == [Verdict.IMPROVED]


def test_settings_and_version_that_differ_are_told() -> None:
    found = compare(report(), report(version="0.2.0", settings={"diagnostician": "model", "flow": "auto"}))
    assert found.settings == {"casenotes": ("0.1.0", "0.2.0"), "diagnostician": ("embedded", "model")}
    assert found.is_clean


def test_baselines_of_different_suites_are_not_compared() -> None:
    with pytest.raises(InvalidBaseline, match="share no incident"):
        compare(report(ONE), report(TWO))
    with pytest.raises(InvalidBaseline, match="share no incident"):
        compare(report(incidents=()), report(incidents=()))


def test_an_expected_drift_is_no_regression_and_carries_its_reason() -> None:
    slower = report(one(tools=14, degraded=True))
    expected = [Expectation("one", "tools.all", False, "it looks at the new runbooks too")]
    found = compare(report(), slower, expected)
    assert {drift.metric: (drift.verdict, drift.reason) for drift in found.drifts} == {
        "tools.all": (Verdict.EXPECTED, "it looks at the new runbooks too"),
        "degraded": (Verdict.REGRESSED, None),
    }
    assert found.stale == ()


@pytest.mark.parametrize(
    "expectation",
    [
        Expectation("two", "tools.all", False, "another incident"),
        Expectation("one", "steps", False, "another metric"),
        Expectation("one", "tools.all", True, "the other direction"),
    ],
)
def test_an_expectation_that_does_not_come_about_is_stale(expectation: Expectation) -> None:
    found = compare(report(), report(one(tools=14)), [expectation])
    assert found.stale == (expectation,)
    assert not found.is_clean


counts = st.integers(0, 100_000)
measured = st.builds(
    Measures,
    degraded=st.booleans(),
    citations_valid=st.booleans(),
    cited=counts,
    unsupported=counts,
    statements=counts,
    uncited=counts,
    rules=st.dictionaries(st.sampled_from(["a", "b", "c"]), st.booleans()),
    steps=counts,
    tools=counts,
    failed_tools=counts,
    input_tokens=counts,
    output_tokens=counts,
    answer_chars=counts,
    duration_ms=counts,
)
judged = st.lists(
    st.builds(Judged, st.sampled_from("xyz"), st.just(("t",)), st.booleans()), unique_by=lambda one: one.text
).map(tuple)
incidents = st.builds(
    lambda name, measures, facts, decoys, error, evidence: evolve(
        ONE,
        id=name,
        folder=name,
        measures=measures,
        facts=facts,
        decoys=decoys,
        error=error,
        evidence=dict.fromkeys(evidence, ""),
    ),
    st.sampled_from("pqr"),
    measured,
    judged,
    judged,
    st.none() | st.just("failed"),
    st.sets(st.sampled_from("mn")),
)
unreadable = st.lists(st.builds(Unreadable, st.sampled_from("pqrs"), st.just("")), max_size=2).map(tuple)
reports = st.builds(
    lambda found, bad: report(*found, incidents=tuple(found), unreadable=bad),
    st.lists(incidents, unique_by=lambda one: one.id),
    unreadable,
)


@given(reports)
def test_a_baseline_has_not_drifted_from_itself(made: BaselineReport) -> None:
    if made.incidents:
        found = compare(made, made)
        assert (found.drifts, found.added, found.removed, found.marks) == ((), (), (), {})


@given(reports, reports)
def test_what_is_better_one_way_is_worse_the_other_way(old: BaselineReport, new: BaselineReport) -> None:
    there, back = both(old, new), both(new, old)
    assert (there is None) == (back is None)
    if there is None or back is None:
        return
    told = {(d.incident, d.metric): (d.old, d.new, d.improved) for d in there.drifts}
    assert told == {(d.incident, d.metric): (d.new, d.old, not d.improved) for d in back.drifts}
    assert (there.added, there.removed) == (back.removed, back.added)


def both(old: BaselineReport, new: BaselineReport) -> Comparison | None:
    try:
        return compare(old, new)
    except InvalidBaseline:
        return None
