"""A sound ledger with one thing wrong: what the deliberately broken ledgers are made of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from casenotes.adapters.memory import MemoryLedger
from casenotes.core.model import AgentStep, HistoricalSession, ToolInvocation
from casenotes.ports.ledger import LedgerView, UnitOfWork
from casenotes.ports.through_work import ThroughWork


class Overlay:
    """An object of which some attributes are replaced."""

    def __init__(self, sound: object, **replaced: object) -> None:
        self._sound = sound
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced[name] if name in self._replaced else getattr(self._sound, name)


class BrokenLedger(ThroughWork):
    """A memory ledger whose units of work and views pass through ``in_work`` and ``in_view``, to be spoilt there."""

    def __init__(self) -> None:
        self.sound = MemoryLedger()

    def in_view(self, view: LedgerView) -> object:
        return view

    def in_work(self, work: UnitOfWork) -> object:
        return self.in_view(work)

    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        async with self.sound.work() as work:
            yield cast(UnitOfWork, self.in_work(work))

    @asynccontextmanager
    async def view(self) -> AsyncIterator[LedgerView]:
        async with self.sound.view() as view:
            yield cast(LedgerView, self.in_view(view))

    async def check(self) -> None:
        await self.sound.check()

    async def close(self) -> None:
        await self.sound.close()

    async def seed_history(
        self,
        session: HistoricalSession,
        steps: Sequence[AgentStep] = (),
        tools: Sequence[ToolInvocation] = (),
    ) -> None:
        await self.sound.seed_history(session, steps, tools)
