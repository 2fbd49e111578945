"""Log lines by kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casenotes.adapters.agents.findings.logs import (
    Severity,
    clusters,
    log_findings,
    mask,
    parse_time,
    read_line,
)
from casenotes.adapters.agents.findings.model import Role

lines = st.lists(
    st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\n\r"), max_size=60)
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("took 12 ms", "took 3456 ms"),
        ("order 3f2a9c1b77 lost", "order 9b0c1d2e3f4a lost"),
        ("at 0x7f596fb6e90", "at 0x7f596fc3ce0"),
        (
            "id 0ca62d24-c10e-4bbe-8b13-c9ca1a2c9a0b failed",
            "id 99a62d24-c10e-4bbe-8b13-c9ca1a2c9a11 failed",
        ),
        ("10.244.0.63:8080 refused", "10.244.1.7:9090 refused"),
    ],
)
def test_lines_that_differ_in_numbers_and_ids_are_of_one_kind(one: str, other: str) -> None:
    assert mask(one) == mask(other)


@pytest.mark.parametrize(("one", "other"), [("disk full", "disk fine"), ("user added", "user faded")])
def test_lines_that_differ_in_words_are_not(one: str, other: str) -> None:
    assert mask(one) != mask(other)


@given(st.text())
def test_masking_is_idempotent(line: str) -> None:
    assert mask(mask(line)) == mask(line)


@given(st.text())
def test_a_masked_line_has_no_digit(line: str) -> None:
    assert not any(character in "0123456789" for character in mask(line))


@given(lines)
def test_every_line_is_counted_once(written: list[str]) -> None:
    assert sum(kind.count for kind in clusters(written)) == sum(1 for line in written if line.strip())


@given(lines)
def test_the_worst_comes_first(written: list[str]) -> None:
    severities = [kind.first.severity for kind in clusters(written)]
    assert severities == sorted(severities, reverse=True)


@given(lines)
def test_counts_do_not_depend_on_the_order(written: list[str]) -> None:
    forward = sorted((kind.first.severity, kind.count) for kind in clusters(written))
    backward = sorted((kind.first.severity, kind.count) for kind in clusters(written[::-1]))
    assert forward == backward


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("2026-01-02T03:04:05Z INFO connection refused, retrying", Severity.PLAIN),
        ("2026-01-02T03:04:05Z ERROR all is well", Severity.ERROR),
        ("[warn] disk at 91%", Severity.WARNING),
        ('level=error msg="x"', Severity.ERROR),
        ("panic: runtime error", Severity.FATAL),
        ("/bin/sh: syntax error: unexpected word", Severity.ERROR),
        ("java.lang.NullPointerException", Severity.ERROR),
        ("done, 0 errors", Severity.PLAIN),
        ("finished without errors, failed=0", Severity.PLAIN),
        ("hello", Severity.PLAIN),
        ('{"level": "warn", "msg": "slow"}', Severity.WARNING),
        ('{"severity": "CRITICAL", "message": "x"}', Severity.FATAL),
        ('{"message": "connection refused"}', Severity.ERROR),
        ('{"level": "info", "message": "timeout set to 5 s"}', Severity.PLAIN),
        ('{"level": 30, "msg": "request failed"}', Severity.ERROR),
        ('{"not": "a log line", "but": "failed"}', Severity.ERROR),
        ("{broken json: failed", Severity.ERROR),
    ],
)
def test_how_bad_a_line_is(line: str, severity: Severity) -> None:
    assert read_line(line).severity is severity


def test_a_finding_has_count_first_line_and_time() -> None:
    text = "\n".join(f"2026-01-02T03:04:0{second}Z ERROR query {second} timed out" for second in range(5))
    (finding,) = log_findings("db-0", text)
    assert finding.text == (
        "The log of `db-0` says 5 times, first at 2026-01-02 03:04:00 UTC: "
        "`2026-01-02T03:04:00Z ERROR query 0 timed out`"
    )
    assert finding.role is Role.CAUSE
    assert finding.since == parse_time("2026-01-02T03:04:00Z")


def test_errors_come_before_warnings_and_the_frequent_before_the_rare() -> None:
    text = "WARN slow\nERROR rare\nERROR often 1\nERROR often 2\nINFO fine"
    assert [finding.text.rpartition(": ")[2] for finding in log_findings("", text)] == [
        "`ERROR often 1`",
        "`ERROR rare`",
        "`WARN slow`",
    ]


def test_a_line_that_only_announces_is_not_the_weightiest() -> None:
    found = log_findings("", "Traceback (most recent call last):\nKeyError: 'REGION'")
    assert max(found, key=lambda finding: finding.weight).text.endswith("`KeyError: 'REGION'`")


def test_a_log_without_errors_says_so() -> None:
    (finding,) = log_findings("web", "one\ntwo")
    assert finding.role is Role.CLEAR
    assert finding.text == "The log of `web` has 2 lines, none of them an error or a warning"


def test_backticks_in_a_line_do_not_break_the_answer() -> None:
    (finding,) = log_findings("web", "ERROR bad `x` here")
    assert finding.text.endswith("`` ERROR bad `x` here ``")


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-02 03:04:05", "2026-13-40T00:00:00Z"])
def test_a_time_without_zone_is_none(text: str) -> None:
    assert parse_time(text) is None
