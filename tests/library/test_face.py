"""What ``import casenotes`` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import casenotes

HEAVY = (
    "aiohttp",
    "aiosqlite",
    "alembic",
    "asyncpg",
    "casenotes.adapters",
    "casenotes.ports.contract",
    "cattrs",
    "langgraph",
    "openai",
    "orjson",
    "prometheus_client",
    "redis",
    "sqlalchemy",
    "structlog",
    "yaml",
)


def test_an_import_loads_no_driver_and_no_framework() -> None:
    script = f"import casenotes, sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_all_that_is_promised_is_there() -> None:
    assert [name for name in casenotes.__all__ if not hasattr(casenotes, name)] == []
    assert sorted(casenotes.__all__, key=str.lower) == sorted(set(casenotes.__all__), key=str.lower)
