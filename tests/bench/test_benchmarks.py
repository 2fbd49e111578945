"""The benchmarks: they run, compare like with like, and say which goals hold."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "bench", *argv], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.stderr == ""
    return done


def figures(*argv: str, into: Path) -> tuple[str, list[dict[str, Any]]]:
    out = into / "figures.json"
    done = run(*argv, "--out", str(out))
    assert done.returncode == 0
    return done.stdout, json.loads(out.read_text())["comparisons"]


def test_a_comparison_is_told_as_a_table_and_as_json(tmp_path: Path) -> None:
    told, found = figures(
        "--seconds", "0.1", "--repetitions", "3", "--only", "trace-sqlite", "import", into=tmp_path
    )
    trace, imported = found
    assert len(trace["floor"]) == len(trace["product"]) == len(trace["ratio"]) == 3
    assert len(imported["product"]) == 3 and imported["floor"] == []
    assert f"| {trace['what']}" in told and f"| {imported['what']}" in told
    assert f"{sum(each['holds'] for each in found)} of 2 goals hold" in told


def test_a_profile_counts_the_statements_of_a_unit_and_shares_out_its_time() -> None:
    told = run("profile", "reading", "--database", "sqlite", "--units", "2").stdout
    assert re.search(r"statements of a unit: [1-9]", told)
    assert re.search(r"^ +[1-9]\d* (?:WITH|SELECT \.\.\. FROM \w+)$", told, re.MULTILINE)
    assert re.search(r"^\| rows and models .*\| \d+% \|", told, re.MULTILINE)


@pytest.mark.long
def test_every_comparison_runs(tmp_path: Path) -> None:
    _, found = figures("--seconds", "0", "--repetitions", "1", into=tmp_path)
    assert {each["what"].partition(":")[0] for each in found} >= {
        "record",
        "trace",
        "chat",
        "import casenotes",
    }
    assert all(each["holds"] in (True, False) for each in found)


@pytest.mark.long
def test_sizes_are_compared_on_both_databases(tmp_path: Path) -> None:
    sizes = ("--runs", "2000", "--sqlite-runs", "2000", "--repetitions", "1")
    _, found = figures("scale", *sizes, into=tmp_path)
    for database in ("postgres", "sqlite"):
        named = [each for each in found if each["what"].startswith(database)]
        assert len([each for each in named if each["goal"] == "ratio <= 1.2"]) == 5
