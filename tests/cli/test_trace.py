"""``casenotes trace``: legible at 80 columns, and harmless whatever is stored."""

from __future__ import annotations

import asyncio

import pytest
from support.cli import CommandLine

import casenotes
from casenotes.entrypoints.cli.terminal import cells
from casenotes.entrypoints.http import shapes

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \x9b31m \u202eabc\u2066 \u2028 \x00 \r overwritten"


def test_a_trace_shows_what_was_done(cli: CommandLine) -> None:
    (run_id,) = cli.record("Why is checkout slow?")
    cli("feedback", "s-1", "useful", "--comment", "it was the pool")
    done = cli("trace", "s-1")
    assert (done.status, done.err) == (0, "")
    assert f"run      {run_id}\n         SUCCESS, CHAT\n" in done.out
    assert "QUESTION\n  Why is checkout slow?\n" in done.out
    assert "ANSWER\n  An answer to Why is checkout slow? [T1]\n" in done.out
    assert "  1. planner: model, m-1, SUCCESS, " in done.out
    assert '     [T1] logs.search {"q":"timeout"} -> SUCCESS, 8 B, 85 ms\n          312 hits\n' in done.out
    assert "12 tokens in, ? out" in done.out
    assert "FEEDBACK\n  useful, " in done.out
    assert "  it was the pool\n" in done.out
    assert "  [x] citations: 1 of calls that were made, 0 of none\n" in done.out


def test_a_trace_is_of_the_latest_run_or_of_exactly_the_one_named(cli: CommandLine) -> None:
    first, second = cli.record("q1", "q2")
    assert second in cli("trace", "s-1").out
    named = cli("trace", "s-1", first).out
    assert first in named
    assert second not in named


def test_json_is_the_shape_of_the_http_api(cli: CommandLine) -> None:
    (run_id,) = cli.record("q")

    async def read() -> object:
        async with casenotes.open(cli.url) as notes:
            return shapes.trace(await notes.trace("s-1"))

    assert cli("trace", "s-1", run_id, "--json").json == asyncio.run(read())


def test_what_is_stored_cannot_steer_the_terminal(cli: CommandLine) -> None:
    async def write() -> None:
        async with casenotes.open(cli.url) as notes, notes.run(f"q {HOSTILE}", session="s-1") as run:
            async with run.step(f"step {HOSTILE}", model=HOSTILE) as step:
                step.input = step.output = step.error_message = HOSTILE
                await run.tool(f"tool {HOSTILE}", {HOSTILE: HOSTILE}, result={"r": HOSTILE}, error=HOSTILE)
            run.answer(f"a {HOSTILE}")

    asyncio.run(write())
    cli("feedback", "s-1", "useful", "--comment", HOSTILE)
    for arguments in (
        ["trace", "s-1"],
        ["trace", "s-1", "--json"],
        ["runs", "s-1"],
        ["runs", "s-1", "--json"],
    ):
        done = cli(*arguments)
        assert done.status == 0
        assert {c for c in done.out if not c.isprintable()} <= {"\n"}
    assert "\\x1b[2J" in cli("trace", "s-1").out
    assert cli("trace", "s-1", "--json").json["run"]["query"] == f"q {HOSTILE}".replace("\x00", "\ufffd")


def test_nothing_is_wider_than_eighty_columns(cli: CommandLine) -> None:
    async def write() -> None:
        async with (
            casenotes.open(cli.url) as notes,
            notes.run("為什麼 " * 60, session="s-" + "x" * 120) as run,
        ):
            async with run.step("planner", model="m" * 90, input="i" * 300) as step:
                step.output, step.error_message = "文" * 300, "wrong " * 40
                for size in (3, 300, 300_000):
                    await run.tool("t" * 50, {"q": "v " * size}, result=["r" * size], duration_ms=10**7)
            run.answer(
                "- " + "an item of a list " * 20 + "\n\n    indented " + "x" * 200 + "\n1. one\n2. two"
            )

    asyncio.run(write())
    for command in ("trace", "runs"):
        out = cli(command, "s-" + "x" * 120).out
        assert max(cells(line) for line in out.splitlines()) <= 80


def test_a_failed_run_says_why_and_a_running_one_that_it_runs(cli: CommandLine) -> None:
    async def scenario() -> None:
        async with casenotes.open(cli.url) as notes:
            with pytest.raises(ValueError, match="hunter2"):
                async with notes.run("q", session="failed", flow="STATE_GRAPH") as run:
                    run.graph.entered("planner")
                    run.graph.entered("executor")
                    raise ValueError("hunter2")
            async with notes.run("q", session="running") as run:
                printed = await asyncio.to_thread(cli, "trace", "running")
                assert "RUNNING, CHAT" in printed.out
                assert "still running" in printed.out
                run.answer("a")

    asyncio.run(scenario())
    out = cli("trace", "failed").out
    assert "FAILED, STATE_GRAPH" in out
    assert "reason   the run raised ValueError\n" in out
    assert "GRAPH\n  START > planner > executor\n  ended ERROR" in out
    assert "hunter2" not in out


def test_the_rules_of_an_aiops_run_are_a_checklist(cli: CommandLine) -> None:
    async def write() -> None:
        async with casenotes.open(cli.url) as notes, notes.run("q", session="s", flow="AI_OPS") as run:
            await run.tool("alerts.firing", result=[{"labels": {"alertname": "HighLatency"}}])
            run.answer("- HighLatency fires [T1]")

    asyncio.run(write())
    out = cli("trace", "s").out
    assert "  [x] alerts_read: the firing alerts were read\n" in out
    assert "  [ ] next_action_given: no next action" in out


@pytest.mark.parametrize("arguments", [["trace", "nope"], ["trace", "s-1", "run-nope"], ["runs", "nope"]])
def test_what_is_not_there_is_told_in_one_line(cli: CommandLine, arguments: list[str]) -> None:
    cli.record("q")
    assert "not found" in cli(*arguments).refused(1)


def test_reading_writes_nothing(cli: CommandLine) -> None:
    cli.record("q")
    before = cli.database.read_bytes()
    cli("trace", "s-1")
    cli("runs", "s-1")
    assert cli.database.read_bytes() == before
