from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from casenotes.adapters.context import MemoryContextStore
from casenotes.ports.context import ContextStore
from casenotes.ports.contract import ContextContract, HeldClock, OpenContext


@asynccontextmanager
async def open_memory_context(
    *, window: int = 6, ttl: int = 100, clock: HeldClock | None = None
) -> AsyncIterator[ContextStore]:
    store = MemoryContextStore(window=window, ttl=ttl, clock=clock or HeldClock())
    yield store
    await store.close()


class TestMemoryContext(ContextContract):
    @pytest.fixture
    def open_context(self) -> OpenContext:
        return open_memory_context
