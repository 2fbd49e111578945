from __future__ import annotations

from pathlib import Path

import pytest
from support.historical import make_historical


@pytest.fixture
def historical(tmp_path: Path) -> Path:
    """A populated database of the old system, not migrated yet."""
    path = tmp_path / "historical.db"
    make_historical(path)
    return path


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """Where a database may be made."""
    return tmp_path / "new 100% ä.db"
