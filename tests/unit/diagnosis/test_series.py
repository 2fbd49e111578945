"""Series against their own past."""

from __future__ import annotations

import math
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casenotes.adapters.agents.findings.metric_names import Family, meaning_of
from casenotes.adapters.agents.findings.model import Role
from casenotes.adapters.agents.findings.series import Sample, series_findings, shift_in
from casenotes.core.text import Json, JsonObject

values = st.floats(allow_nan=True, allow_infinity=True, width=64)
samples = st.lists(st.tuples(st.floats(0, 2e9), values), max_size=60)


def points(*numbers: float) -> list[Sample]:
    return [(60.0 * at, number) for at, number in enumerate(numbers)]


def answer(**pods: list[float]) -> JsonObject:
    result: list[Json] = [
        {"metric": {"pod": pod}, "values": [[60 * at, str(value)] for at, value in enumerate(numbers)]}
        for pod, numbers in pods.items()
    ]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


@pytest.mark.parametrize(
    ("numbers", "before", "after", "at"),
    [
        ([1, 1, 1, 1, 9, 9, 9], 1, 9, 240),
        ([20, 21, 19, 20, 21, 80, 82, 81], 20, 81, 300),
        ([0, 0, 0, 0, 37, 40, 35], 0, 37, 240),
        ([40, 40, 40, 4, 4, 4], 40, 4, 180),
        ([1, math.nan, 1, 1, math.inf, 9, 9], 1, 9, 300),
    ],
)
def test_a_level_that_moved_is_found(numbers: list[float], before: float, after: float, at: float) -> None:
    shift = shift_in(points(*numbers))
    assert shift is not None
    assert (shift.before, shift.after, shift.at) == (before, after, at)


@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [5.0],
        [1, 1, 1, 9],  # one point is a blip
        [1, 1, 9, 1, 1, 1, 1],
        [10, 12, 9, 11, 10, 12, 11, 10, 9],
        [7.0] * 30,
        [0.0] * 30,
        [math.nan] * 10,
        [100, 101, 100, 102, 120, 121, 120],  # real, and too small to speak of
    ],
)
def test_a_level_that_kept_is_not(numbers: list[float]) -> None:
    assert shift_in(points(*numbers)) is None


def test_a_percentage_moves_only_by_points_that_count() -> None:
    series = points(0.2, 0.2, 0.2, 0.2, 0.9, 0.9, 0.9)
    assert shift_in(series) is not None
    assert shift_in(series, percent=True) is None


@given(samples)
def test_any_numbers_give_finite_findings_or_none(series: list[Sample]) -> None:
    shift = shift_in(series)
    if shift is not None:
        assert all(map(math.isfinite, (shift.at, shift.before, shift.after, shift.peak, shift.score)))


@given(
    st.lists(
        st.tuples(st.integers(0, 10_000).map(float), values), max_size=30, unique_by=lambda sample: sample[0]
    ).flatmap(lambda series: st.tuples(st.just(series), st.permutations(series)))
)
def test_the_order_in_which_samples_come_does_not_matter(series: tuple[list[Sample], list[Sample]]) -> None:
    as_made, mixed = series
    assert shift_in(mixed) == shift_in(as_made)


@given(st.lists(st.floats(1, 100), min_size=5, max_size=40), st.integers(-1_000_000, 1_000_000))
def test_when_it_happened_moves_with_the_clock(numbers: list[float], seconds: int) -> None:
    early, late = (
        shift_in([(float(60 * at + offset), value) for at, value in enumerate(numbers)])
        for offset in (0, seconds)
    )
    assert (early is None) == (late is None)
    if early is not None and late is not None:
        assert late.at == early.at + seconds
        assert (late.before, late.after) == (early.before, early.after)


@given(st.lists(st.floats(1, 100), min_size=5, max_size=40), st.sampled_from([0.25, 2.0, 8.0]))
def test_the_unit_of_a_metric_does_not_matter(numbers: list[float], factor: float) -> None:
    plain, scaled = shift_in(points(*numbers)), shift_in(points(*(number * factor for number in numbers)))
    assert (plain is None) == (scaled is None)
    if plain is not None and scaled is not None:
        assert scaled.at == plain.at
        assert scaled.after == pytest.approx(plain.after * factor)


@given(
    st.lists(st.floats(10, 11), min_size=4, max_size=20), st.lists(st.floats(90, 95), min_size=2, max_size=20)
)
def test_a_plain_step_is_always_found(before: list[float], after: list[float]) -> None:
    shift = shift_in(points(*before, *after))
    assert shift is not None
    assert shift.before == median(before)
    assert shift.at == 60.0 * len(before)


def test_the_widest_and_steepest_rise_weighs_most() -> None:
    found = series_findings(
        "pod_cpu_usage_percent",
        answer(
            quiet=[10, 11, 10, 11, 10, 11, 10],
            some=[20, 20, 21, 20, 45, 46, 45],
            most=[1, 1, 1, 1, 85, 88, 90],
        ),
    )
    ranked = sorted(found, key=lambda finding: -finding.weight)
    assert [finding.subject for finding in ranked] == ["most", "some", "quiet"]
    assert ranked[0].role is Role.CAUSE
    assert ranked[0].text.startswith("CPU usage of `most` rose from 1 % to 88 %")
    assert ranked[2].role is Role.CLEAR


def test_less_of_a_resource_in_use_is_no_cause() -> None:
    (finding,) = series_findings("pod_cpu_usage_percent", answer(a=[80, 81, 80, 80, 5, 5, 6]))
    assert finding.role is Role.CONTEXT


def test_less_of_what_should_be_there_is() -> None:
    (finding,) = series_findings("disk_free_bytes", answer(a=[4096, 4096, 4096, 4096, 100, 90, 100]))
    assert finding.role is Role.CAUSE
    assert "fell from 4 KiB to 100 B" in finding.text


def test_series_of_one_owner_stay_apart() -> None:
    series: JsonObject = {"metric": {"pod": "a"}, "values": [[0, "1"]]}
    both: JsonObject = {"status": "success", "data": {"resultType": "matrix", "result": [series, series]}}
    assert len(series_findings("x", both)) == 2


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"data": None},
        {"data": {"result": [None, {"metric": {}}, {"metric": {}, "values": [None, [1], ["a", "b"]]}]}},
    ],
)
def test_an_odd_answer_shows_nothing(odd: JsonObject) -> None:
    assert series_findings("x", odd) == []


@pytest.mark.parametrize(
    ("metric", "words", "unit", "family"),
    [
        ("container_cpu_usage_percent", "CPU usage", "%", Family.RESOURCE),
        ("pod_memory_usage_bytes", "memory usage", "B", Family.RESOURCE),
        ("http_latency_p90_seconds", "p90 HTTP latency", "s", Family.LATENCY),
        ("db_pool_connections_waiting", "DB pool connections waiting", "", Family.RESOURCE),
        ("requests_per_second", "requests per second", "", Family.TRAFFIC),
        ("http_errors_total", "HTTP errors", "", Family.ERRORS),
        ("container_cpu_throttled_seconds_total", "CPU throttled", "s", Family.RESOURCE),
        ("queue_depth", "queue depth", "", Family.RESOURCE),
        ("whatever", "whatever", "", Family.OTHER),
    ],
)
def test_a_metric_is_named_in_words(metric: str, words: str, unit: str, family: Family) -> None:
    meaning = meaning_of(metric)
    assert (meaning.words, meaning.unit, meaning.family) == (words, unit, family)


@pytest.mark.parametrize(
    "metric", ["http_errors_per_second", "http_latency_seconds", "requests_per_second", "other"]
)
def test_what_only_shows_a_fault_weighs_less_than_a_resource(metric: str) -> None:
    moved = answer(a=[1, 1, 1, 1, 90, 90, 90])
    (sign,) = series_findings(metric, moved)
    (resource,) = series_findings("cpu_usage_percent", moved)
    assert sign.role is Role.SYMPTOM
    assert sign.weight < resource.weight


def test_a_long_series_is_thinned_and_its_step_still_found() -> None:
    shift = shift_in(points(*[10.0] * 3000, *[90.0] * 2000))
    assert shift is not None
    assert (shift.before, shift.after) == (10, 90)
    assert abs(shift.at - 60 * 3000) <= 60 * 5000 / 240


def test_a_spike_that_is_over_is_told_with_its_time() -> None:
    (finding,) = series_findings(
        "cpu_usage_percent", answer(web=[20.0] * 20 + [95.0, 90.0, 93.0] + [20.0] * 20)
    )
    assert finding.text == (
        "CPU usage of `web` rose from 20 % to 95 % and came back, "
        "between 1970-01-01 00:20:00 UTC and 1970-01-01 00:23:00 UTC"
    )
    assert finding.role is Role.CAUSE and finding.since is not None
    steady, moved = [20.0] * 20, [95.0] * 20
    (risen,) = series_findings("cpu_usage_percent", answer(web=steady + moved))
    assert finding.weight < risen.weight


@pytest.mark.parametrize(
    "values",
    [
        [20.0] * 20 + [95.0] + [20.0] * 20,
        [20.0, 26.0, 22.0, 31.0, 24.0] * 8,
        [20.0] * 20 + [23.0] * 3 + [20.0] * 20,
        [20.0] * 40,
    ],
)
def test_a_blip_noise_and_a_small_move_are_no_spike(values: list[float]) -> None:
    (finding,) = series_findings("cpu_usage_percent", answer(web=values))
    assert finding.role is Role.CLEAR
