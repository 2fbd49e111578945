"""A command line in a folder of its own, in which no setting of the surroundings is seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.cli import CommandLine


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    for name in os.environ:
        if name.startswith("CASENOTES_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    url = "sqlite+aiosqlite:///casenotes.db"
    monkeypatch.setenv("CASENOTES_DATABASE_URL", url)
    monkeypatch.setenv("CASENOTES_CONTEXT_URL", "memory://")
    return CommandLine(tmp_path, url, capsys)
