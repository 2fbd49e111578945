"""``runs``, ``feedback``, ``erase``, ``migrate``."""

from __future__ import annotations

import asyncio

import pytest
from support.cli import CommandLine

import casenotes
from casenotes.entrypoints.http import shapes


def test_runs_are_listed_newest_first(cli: CommandLine) -> None:
    first, second = cli.record("q1", "q2")
    out = cli("runs", "s-1").out
    assert out.index(second) < out.index(first)
    assert "  1 step" not in out
    assert "Q q1" in out
    assert "A An answer to q1 [T1]" in out


def test_runs_go_on_after_a_page(cli: CommandLine) -> None:
    ids = cli.record("q1", "q2", "q3")
    first = cli("runs", "s-1", "--limit", "2").out
    command = first.splitlines()[-1].removeprefix("more: casenotes ")
    assert command == f"runs s-1 --limit 2 --before {ids[1]}"
    rest = cli(*command.split(), "--json").json
    assert [run["runId"] for run in rest] == [ids[0]]


def test_the_runs_in_json_are_the_wires(cli: CommandLine) -> None:
    cli.record("q1", "q2")

    async def read() -> object:
        async with casenotes.open(cli.url) as notes:
            return [shapes.run_summary(run) for run in await notes.runs("s-1")]

    assert cli("runs", "s-1", "--json").json == asyncio.run(read())


def test_feedback_says_what_it_was_bound_to(cli: CommandLine) -> None:
    first, second = cli.record("q1", "q2")
    named = cli("feedback", "s-1", "--run", first, "useful")
    assert named.out.startswith(f"useful: noted on {first}\ncase ")
    latest = cli("feedback", "s-1", "not_useful", "--comment", "no")
    assert latest.out == f"not_useful: noted on {second}, the session's latest run\n"
    assert cli("feedback", "s-1", "useful", "--json").json == {
        "success": True,
        "sessionId": "s-1",
        "runId": second,
        "fallbackToLatestRun": True,
        "feedback": "useful",
        "caseId": 2,
    }


def test_feedback_on_another_sessions_run_is_refused(cli: CommandLine) -> None:
    (foreign,) = cli.record("q", session="other")
    cli.record("q")
    assert "run not found" in cli("feedback", "s-1", "useful", "--run", foreign).refused(1)


def test_an_erased_session_is_gone(cli: CommandLine) -> None:
    cli.record("q1", "q2")
    assert cli("erase", "s-1").out == "erased s-1: 2 runs, 2 steps, 2 tool calls, 0 cases\n"
    assert "session not found" in cli("erase", "s-1").refused(1)
    cli.record("q1")
    assert cli("erase", "s-1", "--json").json == {
        "sessionId": "s-1",
        "runs": 1,
        "agentSteps": 1,
        "toolInvocations": 1,
        "cases": 0,
    }


def test_a_database_is_migrated_step_by_step(cli: CommandLine) -> None:
    missing = cli("migrate", "status")
    assert missing.status == 1
    assert missing.out.startswith("revision none, ")
    assert not cli.database.exists()

    assert cli("migrate", "upgrade", "--to", "0002").out == "migrated from nothing to 0002\n"
    behind = cli("migrate", "status")
    assert behind.status == 1
    assert "behind: run casenotes migrate upgrade" in behind.out
    assert "run casenotes migrate upgrade" in cli("runs", "s-1").refused(1)

    upgraded = cli("migrate", "upgrade", "--json").json
    assert (upgraded["from"], upgraded["adopted"]) == ("0002", False)
    status = cli("migrate", "status", "--json")
    assert (status.status, status.json["isCurrent"], status.json["pending"]) == (0, True, [])
    assert "nothing to migrate" in cli("migrate", "upgrade").out


@pytest.mark.parametrize("action", ["status", "upgrade"])
def test_a_ledger_in_memory_has_nothing_to_migrate(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    monkeypatch.setenv("CASENOTES_DATABASE_URL", "memory://")
    done = cli("migrate", action)
    assert (done.status, done.out) == (0, "a memory:// ledger has no tables to migrate\n")
    assert cli("migrate", action, "--json").json is None
