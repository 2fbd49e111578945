"""The files of baselines: what is written can be read, and what is wrong is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from baseline.making import ONE, one, report

from casenotes.core.baseline.expectations import Expectation
from casenotes.core.baseline.report import InvalidBaseline, Unreadable
from casenotes.core.errors import InvalidInput
from casenotes.entrypoints.baseline.files import read_expectations, read_report, write_report

GOOD = {"incident": "one", "metric": "steps", "change": "regressed", "reason": "it looks twice"}


def test_a_report_comes_back_as_it_was_written(tmp_path: Path) -> None:
    made = report(one(error="it failed"), unreadable=(Unreadable("b", "incident.json: missing"),))
    write_report(tmp_path / "a.json", made)
    assert read_report(tmp_path / "a.json") == made
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_what_was_there_stays_when_it_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"--out: .* cannot be written"):
        write_report(tmp_path / "nowhere" / "a.json", report())
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_report(tmp_path / "folder", report())
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def spoil(change: Callable[[Any], object]) -> str:
    made = report().as_json()
    change(made)
    return json.dumps(made)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "not strict JSON"),
        ("[NaN]", "not strict JSON"),
        ("[]", "must be an object"),
        ("{}", "format: must be 1"),
        (spoil(lambda it: it.pop("incidents")), "incidents: must be an array"),
        (spoil(lambda it: it["incidents"].append(3)), "incidents[1]: must be an object"),
        (spoil(lambda it: it["incidents"].append(ONE.as_json())), "incidents[1].id: must be the only one"),
        (spoil(lambda it: it["incidents"][0].update(id=" ")), "incidents[0].id: must be text"),
        (spoil(lambda it: it["incidents"][0].update(steps=-1)), "incidents[0].steps: must be a whole number"),
        (
            spoil(lambda it: it["incidents"][0].update(steps=True)),
            "incidents[0].steps: must be a whole number",
        ),
        (
            spoil(lambda it: it["incidents"][0]["facts"][0].pop("stated")),
            "incidents[0].facts[0].stated: must be",
        ),
        (
            spoil(lambda it: it["incidents"][0]["citations"].pop("valid")),
            "incidents[0].citations.valid: must be",
        ),
        (
            spoil(lambda it: it["incidents"][0].update(evidence=[])),
            "incidents[0].evidence: must be an object",
        ),
    ],
)
def test_a_file_that_is_no_baseline_is_refused_by_name_and_field(
    tmp_path: Path, content: str, told: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(InvalidBaseline) as refused:
        read_report(path)
    assert f"{path}: {told}" in str(refused.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidBaseline, match=r"a\.json: there is no such file"):
        read_report(tmp_path / "a.json")


def test_expectations_are_read(tmp_path: Path) -> None:
    path = tmp_path / "expected.json"
    path.write_text(json.dumps({"expected": [GOOD, {**GOOD, "change": "improved"}]}))
    assert read_expectations(path) == (
        Expectation("one", "steps", False, "it looks twice"),
        Expectation("one", "steps", True, "it looks twice"),
    )


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([], "must be an object"),
        ({}, "expected: must be an array"),
        ({"expected": [], "more": 1}, "more: must be left out"),
        ({"expected": [{**GOOD, "reason": " "}]}, "expected[0].reason: must be text, and not blank"),
        ({"expected": [{**GOOD, "change": "worse"}]}, "expected[0].change: must be regressed or improved"),
        ({"expected": [{**GOOD, "metrics": ""}]}, "expected[0].metrics: must be left out"),
        ({"expected": [{k: v for k, v in GOOD.items() if k != "incident"}]}, "expected[0].incident: must be"),
        ({"expected": [GOOD, GOOD]}, "expected[1]: must be the only one"),
    ],
)
def test_an_expectation_that_is_wrong_is_refused_by_field(tmp_path: Path, value: Any, told: str) -> None:
    path = tmp_path / "expected.json"
    path.write_text(json.dumps(value))
    with pytest.raises(InvalidBaseline) as refused:
        read_expectations(path)
    assert told in str(refused.value)
