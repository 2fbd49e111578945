from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from casenotes.adapters.context import SqliteContextStore
from casenotes.ports.context import ContextStore
from casenotes.ports.contract import (
    ContextContract,
    ContextOutageContract,
    DurableContextContract,
    HeldClock,
    OpenContext,
)


def opens(file: Path) -> OpenContext:
    """Opens the store in this file, as often as it is asked to."""

    @asynccontextmanager
    async def open_file(
        *, window: int = 6, ttl: int = 100, clock: HeldClock | None = None
    ) -> AsyncIterator[ContextStore]:
        store = SqliteContextStore(file, window=window, ttl=ttl, clock=clock or HeldClock())
        try:
            yield store
        finally:
            await store.close()

    return open_file


class TestSqliteContext(ContextContract, DurableContextContract, ContextOutageContract):
    @pytest.fixture
    def open_context(self, tmp_path: Path) -> OpenContext:
        return opens(tmp_path / "context.db")

    @pytest.fixture
    def unreachable_context(self, tmp_path: Path) -> OpenContext:
        return opens(tmp_path / "nowhere" / "context.db")
