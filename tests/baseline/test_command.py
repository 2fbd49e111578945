"""``casenotes baseline run`` and ``diff``, as a team and its CI use them."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from baseline.making import SUITE, make_pack, one, report
from support.cli import CommandLine

from casenotes.core.baseline.report import Judged
from casenotes.entrypoints.baseline.files import write_report
from casenotes.entrypoints.cli.progress import progress_bar


def run(cli: CommandLine, suite: Path, out: str) -> None:
    done = cli("baseline", "run", str(suite), "--out", out)
    assert (done.status, done.err) == (0, ""), done


def test_twice_the_same_is_no_drift_and_lost_evidence_is_told(cli: CommandLine, tmp_path: Path) -> None:
    run(cli, SUITE, "a.json")
    run(cli, SUITE, "b.json")
    done = cli("baseline", "diff", "a.json", "b.json")
    assert (done.status, done.err) == (0, "")
    assert done.out == "9 incidents compared: no drift\n"
    shutil.copytree(SUITE, tmp_path / "suite")
    (tmp_path / "suite/logs_disk_full/logs/orders.jsonl").unlink()
    run(cli, tmp_path / "suite", "c.json")
    done = cli("baseline", "diff", "a.json", "c.json", "--json")
    assert done.status == 1
    assert {drift["incident"] for drift in done.json["drifts"]} == {"logs_disk_full"}
    assert {drift["verdict"] for drift in done.json["drifts"]} >= {"regressed"}
    assert done.json["changed"] == {"logs_disk_full": ["evidence logs/orders.jsonl removed"]}
    assert "regressed" in cli("baseline", "diff", "a.json", "c.json").out


def test_any_evidence_file_that_is_removed_is_a_regression(cli: CommandLine, tmp_path: Path) -> None:
    shutil.copytree(SUITE, tmp_path / "suite")
    (tmp_path / "suite/logs_disk_full/logs/invoices.jsonl").unlink()
    run(cli, SUITE, "a.json")
    run(cli, tmp_path / "suite", "b.json")
    done = cli("baseline", "diff", "a.json", "b.json", "--json")
    assert done.status == 1
    assert {drift["incident"] for drift in done.json["drifts"]} == {"logs_disk_full"}


def test_a_run_tells_what_was_stated_and_missed(cli: CommandLine, tmp_path: Path) -> None:
    make_pack(tmp_path / "suite", "alpha")
    (tmp_path / "suite" / "broken").mkdir()
    done = cli("baseline", "run", "suite", "--out", "a.json")
    assert done.status == 1
    assert "alpha  0/1 facts" in done.out and "  - the pool is exhausted" in done.out
    assert "broken: cannot be read: incident.json: missing" in done.out
    assert "1 incident: 0 of 1 fact stated, 1 cannot be read" in done.out
    assert json.loads(Path("a.json").read_text())["unreadable"] == [
        {"folder": "broken", "reason": "incident.json: missing"}
    ]
    done = cli("baseline", "run", "suite", "--out", "a.json", "--json")
    assert done.json == json.loads(Path("a.json").read_text())


def test_no_secret_and_no_address_is_written(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASENOTES_API_KEYS", "hunter2-hunter2")
    monkeypatch.setenv("CASENOTES_CONTEXT_URL", "redis://user:hunter2@nowhere/1")
    run(cli, SUITE / "runbook_certificate", "a.json")
    text = Path("a.json").read_text()
    assert "hunter2" not in text and "nowhere" not in text
    assert json.loads(text)["settings"] == {
        "diagnostician": "embedded",
        "model": None,
        "flow": "auto",
        "timeoutSeconds": 120,
    }


def test_an_expected_drift_passes_and_a_stale_expectation_is_told(cli: CommandLine) -> None:
    write_report(Path("a.json"), report())
    missed = one(facts=(Judged("the disk is full", ("disk", "full"), False),), tools=14)
    write_report(Path("b.json"), report(missed))
    expected = [
        {
            "incident": "one",
            "metric": "fact: the disk is full",
            "change": "regressed",
            "reason": "the disk is another incident's now",
        },
        {"incident": "one", "metric": "tools.all", "change": "regressed", "reason": "it looks further"},
        {"incident": "one", "metric": "degraded", "change": "regressed", "reason": "not any more | so"},
    ]
    Path("expected.json").write_text(json.dumps({"expected": expected}))
    assert cli("baseline", "diff", "a.json", "b.json").status == 1
    arguments = ("baseline", "diff", "a.json", "b.json", "--expected", "expected.json")
    done = cli(*arguments)
    assert done.status == 0
    assert "expected   tools.all: 8 -> 14" in done.out and "it looks further" in done.out
    assert "expected and not seen: one, degraded regressed" in " ".join(done.out.split())
    assert "1 incident compared: 0 improved, 0 regressed, 2 expected; 1 expectation not met" in " ".join(
        done.out.split()
    )
    markdown = cli(*arguments, "--markdown")
    assert markdown.status == 0
    assert "| one | tools.all | 8 | 14 | expected: it looks further |" in markdown.out
    assert "not any more \\| so" in markdown.out
    shape = cli(*arguments, "--json").json
    assert shape["counts"] == {"improved": 0, "regressed": 0, "expected": 2}
    assert [one["metric"] for one in shape["staleExpectations"]] == ["degraded"]


def test_what_is_stored_cannot_steer_the_terminal_or_the_table(cli: CommandLine) -> None:
    nasty = one(id="a\x1b[2J|b", facts=(Judged("x\x1b]0;t\x07 | *y*\nz", ("q",), True),))
    worse = one(id="a\x1b[2J|b", facts=(Judged("x\x1b]0;t\x07 | *y*\nz", ("q",), False),))
    write_report(Path("a.json"), report(nasty))
    write_report(Path("b.json"), report(worse))
    for form in ((), ("--json",), ("--markdown",)):
        done = cli("baseline", "diff", "a.json", "b.json", *form)
        assert done.status == 1
        assert "\x1b" not in done.out and "\x07" not in done.out
    (row,) = [line for line in done.out.splitlines() if "x\\\\x1b" in line]
    assert row.count(" | ") - row.count("\\|") == 4 or row.startswith("| a")


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["diff", "a.json", "nowhere.json"], 1, "nowhere.json: there is no such file"),
        (["diff", "a.json", "other.json"], 1, "share no incident"),
        (["diff", "a.json", "a.json", "--expected", "a.json"], 1, "a.json: casenotes: must be left out"),
        (["diff", "a.json"], 2, "--help"),
        (["diff", "a.json", "a.json", "--json", "--markdown"], 2, "--help"),
        (["run", "nowhere", "--out", "x.json"], 1, "nowhere: must be an existing folder"),
        (["run", "."], 2, "--help"),
        (["run", str(SUITE), "--out", "no/where.json"], 2, "--out"),
        (["run", str(SUITE), "--out", "x.json", "--concurrency", "0"], 2, "--concurrency"),
        (["run", str(SUITE), "--out", "x.json", "--timeout", "soon"], 2, "--timeout"),
        (["run", str(SUITE), "--out", "x.json", "--flow", "sideways"], 2, "--flow"),
        (["run", str(SUITE), "--out", "x.json", "--database", "mysql://secret"], 2, "--database: must be"),
        (["capture", "s-1"], 2, "--help"),
        (["sideways"], 2, "--help"),
        ([], 2, "--help"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_one_line(
    cli: CommandLine, arguments: list[str], status: int, told: str
) -> None:
    write_report(Path("a.json"), report())
    write_report(Path("other.json"), report(one(id="other")))
    line = cli("baseline", *arguments).refused(status)
    assert told in line and "secret" not in line


@pytest.mark.parametrize("action", ["run", "diff", "isolation", "capture"])
def test_each_part_has_help_with_an_example(cli: CommandLine, action: str) -> None:
    done = cli("baseline", action, "--help")
    assert done.status == 0
    assert f"casenotes baseline {action}" in done.out.partition("example")[2]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_on_a_terminal_and_nowhere_else() -> None:
    nowhere, terminal = io.StringIO(), Terminal()
    for stream in (nowhere, terminal):
        with progress_bar(stream) as tell:
            tell(1, 2, "a\x1b[2Jb")
            tell(2, 2, "b")
    assert nowhere.getvalue() == ""
    drawn = terminal.getvalue()
    assert "[############............] 1/2 a\\x1b[2Jb" in drawn
    assert drawn.endswith("[########################] 2/2 b\r\x1b[K")
