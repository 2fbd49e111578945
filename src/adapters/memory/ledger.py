"""The memory ledger: units of work that take turns, views that are references to an unchanging state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from attrs import define, evolve, field, frozen

from casenotes.adapters.memory.cases import CasesReader, CasesWriter
from casenotes.adapters.memory.erase import erase_session
from casenotes.adapters.memory.history import HistoryReader, HistoryWriter
from casenotes.adapters.memory.journal import JournalReader, JournalWriter
from casenotes.adapters.memory.keys import KeysWriter
from casenotes.adapters.memory.runs import RunsReader, RunsWriter
from casenotes.adapters.memory.sessions import SessionsReader, SessionsWriter
from casenotes.adapters.memory.state import Draft, Ids, Snapshot, State
from casenotes.adapters.rows import Row, to_row
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.model import AgentStep, HistoricalSession, ToolInvocation
from casenotes.core.views import Erasure
from casenotes.ports.through_work import ThroughWork


@frozen
class MemoryView:
    """``casenotes.ports.ledger.LedgerView``."""

    sessions: SessionsReader
    runs: RunsReader
    journal: JournalReader
    cases: CasesReader
    history: HistoryReader


@frozen
class MemoryUnitOfWork:
    """``casenotes.ports.ledger.UnitOfWork``."""

    _ledger: MemoryLedger
    _draft: Draft
    sessions: SessionsWriter
    runs: RunsWriter
    journal: JournalWriter
    cases: CasesWriter
    history: HistoryWriter
    keys: KeysWriter

    async def erase(
        self, session_id: str, *, at: datetime, idle_since: datetime | None = None
    ) -> Erasure | None:
        return erase_session(self._draft, session_id, at, idle_since)

    async def commit(self) -> None:
        self._ledger._state = self._draft.state


@define(repr=False)
class MemoryLedger(ThroughWork):
    """``casenotes.ports.ledger.Ledger``, in the memory of this process and gone with it."""

    _state: State = field(factory=State, init=False)
    _ids: Ids = field(factory=Ids, init=False)
    _turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _closed: bool = field(default=False, init=False)

    @asynccontextmanager
    async def work(self) -> AsyncIterator[MemoryUnitOfWork]:
        await self.check()
        async with self._turn:
            draft = Draft(self._committed, self._ids)
            try:
                yield MemoryUnitOfWork(
                    self,
                    draft,
                    SessionsWriter(draft),
                    RunsWriter(draft),
                    JournalWriter(draft),
                    CasesWriter(draft),
                    HistoryWriter(draft),
                    KeysWriter(draft),
                )
            finally:
                draft.end()

    @asynccontextmanager
    async def view(self) -> AsyncIterator[MemoryView]:
        await self.check()
        snapshot = Snapshot(self._committed)
        try:
            yield MemoryView(
                SessionsReader(snapshot),
                RunsReader(snapshot),
                JournalReader(snapshot),
                CasesReader(snapshot),
                HistoryReader(snapshot),
            )
        finally:
            snapshot.end()

    async def check(self) -> None:
        if self._closed:
            raise LedgerUnavailable("the ledger is closed")

    async def close(self) -> None:
        self._closed = True

    @property
    def state(self) -> State:
        """All rows, as they were committed last."""
        return self._state

    def _committed(self) -> State:
        return self._state

    async def seed_history(
        self,
        session: HistoricalSession,
        steps: Sequence[AgentStep] = (),
        tools: Sequence[ToolInvocation] = (),
    ) -> None:
        """Put a row of the old system in, with steps and tool calls of its session that belong to no run.

        Their ``sequence`` and ``step_sequence`` become the old step number. For tests: no other way leads here.
        """
        async with self._turn:
            state, name = self._state, session.session_id
            row = {**to_row(session), "id": next(self._ids.history)}
            step_rows = [_unplaced(to_row(step), next(self._ids.steps)) for step in steps]
            tool_rows = [_unplaced(to_row(tool), next(self._ids.tools)) for tool in tools]
            place = (name, None)
            self._state = evolve(
                state,
                history={**state.history, name: (*state.history.get(name, ()), row)},
                steps={**state.steps, place: (*state.steps.get(place, ()), *step_rows)},
                tools={**state.tools, place: (*state.tools.get(place, ()), *tool_rows)},
            )


def _unplaced(row: Row, number: int) -> Row:
    return {**row, "id": number, "run_id": None, "sequence": None, "step_sequence": None}
