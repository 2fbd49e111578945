"""The command line under test, in this process and in one of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

import casenotes
from casenotes.entrypoints.cli import main


@frozen
class Done:
    """How a command ended, and what it said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The JSON it printed."""
        return json.loads(self.out)

    def refused(self, status: int) -> str:
        """The one line that it refused with; there was no output, and no traceback."""
        assert (self.status, self.out) == (status, ""), self
        assert self.err.startswith("casenotes")
        assert self.err.count("\n") == 1, self.err
        return self.err


@frozen
class CommandLine:
    """Runs commands in a folder of its own, with a record in a file there."""

    folder: Path
    url: str
    _capture: pytest.CaptureFixture[str]

    @property
    def database(self) -> Path:
        return self.folder / "casenotes.db"

    def __call__(self, *arguments: str) -> Done:
        """Run a command in this process."""
        self._capture.readouterr()
        status = main(arguments)
        captured = self._capture.readouterr()
        return Done(status, captured.out, captured.err)

    def process(self, *arguments: str, environ: Mapping[str, str] | None = None) -> Done:
        """Run a command as ``python -m casenotes``."""
        done = subprocess.run(
            [sys.executable, "-m", "casenotes", *arguments],
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, **(environ or {})},
            cwd=self.folder,
            timeout=120,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def record(self, *questions: str, session: str = "s-1") -> list[str]:
        """Record an answered run for each question; their run ids."""

        async def write() -> list[str]:
            ids = []
            async with casenotes.open(self.url) as notes:
                for question in questions:
                    async with notes.run(question, session=session) as run:
                        async with run.step("planner", model="m-1") as step:
                            step.input, step.output, step.input_tokens = question, "look at the logs", 12
                            await run.tool("logs.search", {"q": "timeout"}, result="312 hits", duration_ms=85)
                        run.answer(f"An answer to {question} [T1]")
                    ids.append(run.run_id)
            return ids

        return asyncio.run(write())
