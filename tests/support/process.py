"""The service in a process of its own, to be stopped and killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

TESTS = Path(__file__).parent.parent

WAITING = ("support.waiting_service",)
SERVE = ("casenotes", "serve", "--port", "0")


@frozen
class Process:
    """A service that listens on ``url`` in another process, keeps its files in ``folder``, and writes a log."""

    url: str
    folder: Path
    process: subprocess.Popen[str]

    def let_runs_end(self) -> None:
        self.process.send_signal(signal.SIGUSR1)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def exit_status(self) -> int:
        return self.process.wait(60)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()


@contextmanager
def service_process(
    folder: Path, program: tuple[str, ...] = WAITING, /, **settings: str
) -> Iterator[Process]:
    """Start it, wait until it listens, and see to it that it is gone afterwards."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CASENOTES_")}
    environ |= {
        "PYTHONPATH": str(TESTS),
        "PYTHONUNBUFFERED": "1",
        "CASENOTES_DATABASE_URL": f"sqlite+aiosqlite:///{folder / 'casenotes.db'}",
        "CASENOTES_CONTEXT_URL": f"sqlite:///{folder / 'context.db'}",
        "CASENOTES_LOG_FORMAT": "json",
        **{f"CASENOTES_{name.upper()}": value for name, value in settings.items()},
    }
    command = [sys.executable, "-m", *program]
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(
            command, env=environ, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("casenotes listens on http://"), (folder / "log").read_text()
        yield Process(line.split()[-1], folder, process)
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()
