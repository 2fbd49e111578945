"""What the command line loads: what a command needs, and what a setting asks for."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request

import pytest
from support.cli import CommandLine

NEVER = ("asyncpg", "langgraph", "openai", "redis", "yaml")
"""What other settings need, or nobody but the developers."""

TO_WORK = ("aiohttp", "alembic", "cattrs", "prometheus_client", "sqlalchemy", "structlog")
"""What a command needs that does something."""

_MAIN = """
import json, sys
from casenotes.entrypoints.cli import main
status = main(sys.argv[1:])
print(json.dumps([status, *sorted(sys.modules)]))
"""


def process(cli: CommandLine, *arguments: str) -> subprocess.Popen[str]:
    """The command, which at its end prints its status and all modules that it has loaded."""
    return subprocess.Popen(
        [sys.executable, "-c", _MAIN, *arguments], stdout=subprocess.PIPE, encoding="utf-8", cwd=cli.folder
    )


def loaded_by(cli: CommandLine, *arguments: str) -> set[str]:
    with process(cli, *arguments) as done:
        out, _ = done.communicate(timeout=120)
    return loaded(out)


def loaded(out: str) -> set[str]:
    status, *modules = json.loads(out.splitlines()[-1])
    assert status == 0, out
    return set(modules)


def loaded_by_a_service(cli: CommandLine) -> set[str]:
    """By a service that has answered a question, streamed, and was then told to go."""
    body = json.dumps({"sessionId": "s-1", "question": "Why is checkout slow?"}).encode()
    with process(cli, "serve", "--port", "0") as service:
        try:
            assert service.stdout is not None
            url = service.stdout.readline().removeprefix("casenotes listens on ").strip()
            asked = urllib.request.Request(
                f"{url}/api/chat_stream", body, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(asked, timeout=60) as answer:
                assert b"done" in answer.read()
            service.send_signal(signal.SIGINT)
            return loaded(service.stdout.read())
        finally:
            service.kill()


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"]], ids=" ".join)
def test_help_loads_no_driver_and_no_framework(cli: CommandLine, arguments: list[str]) -> None:
    assert loaded_by(cli, *arguments).isdisjoint((*NEVER, *TO_WORK))


def test_a_service_on_files_loads_nothing_of_the_stores_and_agents_it_was_not_given(cli: CommandLine) -> None:
    first, again = loaded_by_a_service(cli), loaded_by_a_service(cli)
    for modules in (first, again):
        assert modules.isdisjoint((*NEVER, "sqlalchemy.orm", "aiosqlite"))
        assert {"casenotes.adapters.sqlite", "casenotes.adapters.agents"} <= modules
        assert modules.isdisjoint({"casenotes.adapters.postgres", "casenotes.adapters.memory"})
    assert "alembic" in first
    assert "alembic" not in again  # the file has nothing to migrate any more


def test_a_command_that_reads_loads_no_web_framework_and_no_migrations(cli: CommandLine) -> None:
    cli.record("q")
    modules = loaded_by(cli, "trace", "s-1")
    assert "casenotes.adapters.sqlite" in modules
    assert modules.isdisjoint((*NEVER, "alembic", "prometheus_client", "sqlalchemy.orm", "structlog"))
