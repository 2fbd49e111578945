from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from casenotes.adapters.memory import MemoryLedger
from casenotes.core.model import AgentStep, HistoricalSession, ToolInvocation
from casenotes.ports.contract import LedgerContract, OpenLedger, RepeatedHistoryContract
from casenotes.ports.ledger import Ledger


@asynccontextmanager
async def open_memory_ledger() -> AsyncIterator[Ledger]:
    ledger = MemoryLedger()
    yield ledger
    await ledger.close()


class TestMemoryLedger(LedgerContract, RepeatedHistoryContract):
    @pytest.fixture
    def open_ledger(self) -> OpenLedger:
        return open_memory_ledger

    async def seed_history(
        self,
        ledger: Ledger,
        session: HistoricalSession,
        steps: Sequence[AgentStep] = (),
        tools: Sequence[ToolInvocation] = (),
    ) -> None:
        assert isinstance(ledger, MemoryLedger)
        await ledger.seed_history(session, steps, tools)
