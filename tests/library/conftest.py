"""The record under test: in memory, and in a file."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new record, of each kind in turn."""
    return "memory://" if request.param == "memory" else sqlite_url(tmp_path)


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    """The URL of a new record that may be opened more than once."""
    return sqlite_url(tmp_path)


def sqlite_url(folder: Path) -> str:
    return f"sqlite+aiosqlite:///{folder / 'runs.db'}"
