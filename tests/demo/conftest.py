"""The demo under test: no setting of the surroundings is seen, and logging is as it was afterwards."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from support.cli import CommandLine


@pytest.fixture
def cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[CommandLine]:
    for name in os.environ:
        if name.startswith("CASENOTES_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    root, configured = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    yield CommandLine(tmp_path, "", capsys)
    root.handlers[:], root.level = handlers, level
    structlog.configure(**configured)
