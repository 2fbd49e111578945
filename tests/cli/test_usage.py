"""How commands are asked: help with an example, one line for what is wrong, and the exit status."""

from __future__ import annotations

import pytest
from support.cli import CommandLine

from casenotes.entrypoints.cli import COMMANDS

NAMES = [command.name for command in COMMANDS]


def test_the_commands_are_those_that_work(cli: CommandLine) -> None:
    assert sorted(NAMES) == [
        "ask",
        "baseline",
        "demo",
        "erase",
        "feedback",
        "migrate",
        "prune",
        "runs",
        "serve",
        "trace",
        "verify",
    ]
    done = cli("--help")
    assert done.status == 0
    assert all(name in done.out for name in NAMES)


@pytest.mark.parametrize(
    "arguments", [[name] for name in NAMES] + [["migrate", "status"], ["migrate", "upgrade"]]
)
def test_each_command_has_help_with_an_example(cli: CommandLine, arguments: list[str]) -> None:
    done = cli(*arguments, "--help")
    assert (done.status, done.err) == (0, "")
    assert "example" in done.out
    assert f"casenotes {' '.join(arguments)}" in done.out.partition("example")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["verify", "s-1", "s-2"],
        ["prune"],
        ["prune", "--older-than", "soon"],
        ["prune", "--older-than", "0d"],
        ["prune", "--older-than", "-1d"],
        ["prune", "--older-than", "1.5d"],
        ["prune", "--older-than", "9999999d"],
        ["trace"],
        ["ask"],
        ["ask", "q", "--flow", "sideways"],
        ["runs", "s", "--limit", "many"],
        ["feedback", "s"],
        ["feedback", "s", "great"],
        ["migrate"],
        ["migrate", "downgrade"],
        ["serve", "--port", "65536"],
        ["trace", "s", "r", "\x1b[2J"],
    ],
)
def test_what_is_asked_wrongly_is_told_in_one_line(cli: CommandLine, arguments: list[str]) -> None:
    line = cli(*arguments).refused(2)
    assert "--help" in line
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["ask", "  "], "question"),
        (["ask", "q", "--session", "a/b"], "sessionId"),
        (["runs", "s-1", "--limit", "501"], "limit"),
        (["migrate", "upgrade", "--to", "9999"], "revision"),
    ],
)
def test_a_value_that_is_refused_is_named(cli: CommandLine, arguments: list[str], field: str) -> None:
    cli.record("q")
    assert field in cli(*arguments).refused(2)


@pytest.mark.parametrize(
    "arguments",
    [["trace", "\udcff"], ["runs", "s", "--before", "\udcff"], ["erase", "\udcff"], ["ask", "\udcff"]],
)
def test_bytes_that_are_no_text_are_refused(cli: CommandLine, arguments: list[str]) -> None:
    assert "must be UTF-8" in cli(*arguments).refused(2)
