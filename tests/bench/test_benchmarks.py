"""The benchmarks: they run, compare like with like, and say which goals hold."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
SLOWED = sys.platform == "linux" and shutil.which("cc") is not None
needs_compiler = pytest.mark.skipif(
    not SLOWED, reason="no C compiler on Linux: apt-get install gcc libc6-dev"
)
COMMITS_OF_FLOOR, COMMITS_OF_PRODUCT = 16, 14
"""Of a run: 12 facts, and its start and its end, which the floor does in two commits each."""


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


@needs_compiler
def test_each_commit_on_a_slow_disk_waits_for_a_flush_and_the_disk_is_named(tmp_path: Path) -> None:
    told, found = figures(
        *("--seconds", "0", "--repetitions", "1", "--only", "record-sqlite", "--flush-ms", "2"), into=tmp_path
    )
    alone = {each["disk"]: each for each in found if each["what"].endswith("a run alone")}
    assert set(alone) == {"as it is", "2 ms a flush"}
    slow = alone["2 ms a flush"]
    assert slow["floor"][0]["value"] >= COMMITS_OF_FLOOR * 2
    assert slow["product"][0]["value"] >= COMMITS_OF_PRODUCT * 2
    assert slow["goal"] == alone["as it is"]["goal"]
    title, table = told.split("On a disk of 2 ms a flush:")
    assert f"| {slow['what']}" in title and f"| {slow['what']}" in table
    commits = re.search(r"record-sqlite, 2 ms a flush: .* did (\d+) commits/s", told)
    assert commits is not None and int(commits[1]) <= 500


def test_without_a_compiler_the_slow_disk_is_left_out_with_a_line_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    told, found = figures(*("--seconds", "0", "--repetitions", "1", "--only", "record-sqlite"), into=tmp_path)
    assert {each["disk"] for each in found} == {"as it is"}
    assert len([line for line in told.splitlines() if "2 ms a flush is left out: " in line]) == 1


def test_a_trace_is_read_at_least_once_however_little_time_there_is(tmp_path: Path) -> None:
    _, (trace,) = figures("--seconds", "0", "--repetitions", "1", "--only", "trace-sqlite", into=tmp_path)
    assert len(trace["floor"]) == len(trace["product"]) == 1


@pytest.mark.parametrize("argv", [("--repetitions", "0"), ("--flush-ms", "-1"), ("--flush-ms", "nan")])
def test_measuring_nothing_is_refused(argv: tuple[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", *argv], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2 and f"argument {argv[0]}: at least" in done.stderr


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
    slowed = [each for each in found if each["disk"] != "as it is"]
    assert len(slowed) == (6 if SLOWED else 0)
    for each in slowed:
        assert (each["flushes"] > 0) == (each["unit"] == "p50 ms"), each["what"]
        for side in ("floor", "product"):
            assert not each["flushes"] or each[side][0]["value"] >= each["flushes"] * 2, each["what"]


@pytest.mark.long
def test_sizes_are_compared_on_both_databases(tmp_path: Path) -> None:
    sizes = ("--runs", "2000", "--sqlite-runs", "2000", "--repetitions", "1")
    _, found = figures("scale", *sizes, into=tmp_path)
    for database in ("postgres", "sqlite"):
        named = [each for each in found if each["what"].startswith(database)]
        assert len([each for each in named if each["goal"] == "ratio <= 1.2"]) == 5
