"""What an alert's expression measures."""

from __future__ import annotations

import pytest

from casenotes.adapters.evidence.live.discovery import metric_name
from casenotes.adapters.evidence.live.promql import matcher, measured


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("load > 4", "load"),
        ("up == 0", "up"),
        ("up==bool 0", "up"),
        ("a / b >= 1.5e3 * (60 + 1)", "a / b"),
        ('x{a=">",b!="y",c=~"z"} < 10', 'x{a=">",b!="y",c=~"z"}'),
        ("sum by (x) (rate(y[5m])) != -1", "sum by (x) (rate(y[5m]))"),
        ("sum(up == 0) > 2 # > 3", "sum(up == 0) > 2 # > 3"),
        ("a > 1 and b > 2", "a > 1 and b > 2"),
        ("a unless on (x) b > 2", "a unless on (x) b > 2"),
        ("a > b", "a > b"),
        ("1 < a", "1 < a"),
        ("a > 1 > 0", "a > 1 > 0"),
        ("absent(up)", "absent(up)"),
        ("and_more > 1", "and_more"),
        ('x{a="\\">"} > 1', 'x{a="\\">"}'),
        (' "unclosed > 1', '"unclosed > 1'),
        ("> 1", "> 1"),
    ],
)
def test_an_expression_measures_what_it_compares_with_a_number(expression: str, what: str) -> None:
    assert measured(expression) == what


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("node_load1", "node_load1"),
        ('pool_bytes{a="other"}', "pool_bytes"),
        ("rate(http_errors_total[5m])", "http_errors"),
        ("100 * sum by (pod) (rate(cpu_seconds_total[5m]))", "cpu"),
        ("histogram_quantile(0.9, sum by (le) (rate(latency_seconds_bucket[5m])))", "latency_seconds"),
        ("a / b", ""),
        ("1e9 + Inf", ""),
        ("vector(1)", ""),
    ],
)
def test_an_expression_goes_by_the_name_of_its_one_metric(expression: str, name: str) -> None:
    assert metric_name(expression) == name


def test_what_cannot_be_a_label_is_refused() -> None:
    with pytest.raises(ValueError, match="label"):
        matcher("a-b", "x")
