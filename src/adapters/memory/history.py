"""The old system's sessions in memory."""

from __future__ import annotations

from attrs import frozen

from casenotes.adapters.memory.state import Draft, Snapshot
from casenotes.adapters.rows import feedback_row, from_row, historical_trace
from casenotes.core.errors import SessionNotFound
from casenotes.core.model import Feedback, HistoricalSession
from casenotes.core.views import HistoricalTrace


@frozen
class HistoryReader:
    """``casenotes.ports.ledger.HistoryView``."""

    _snapshot: Snapshot

    async def get(self, session_id: str) -> HistoricalSession | None:
        row = self._snapshot.state.historical(session_id)
        return None if row is None else from_row(HistoricalSession, row)

    async def trace(self, session_id: str) -> HistoricalTrace | None:
        state, place = self._snapshot.state, (session_id, None)
        row = state.historical(session_id)
        if row is None:
            return None
        return historical_trace(row, state.steps.get(place, ()), state.tools.get(place, ()))


@frozen
class HistoryWriter(HistoryReader):
    """``casenotes.ports.ledger.History``."""

    _snapshot: Draft

    async def set_feedback(self, session_id: str, feedback: Feedback) -> None:
        given = feedback_row(feedback)
        row = self._snapshot.state.historical(session_id)
        if row is None:
            raise SessionNotFound(session_id)
        rated = row | {name: given[name] for name in ("feedback", "feedback_comment")}
        history = self._snapshot.state.history
        rows = tuple(rated if other is row else other for other in history[session_id])
        self._snapshot.replace(history={**history, session_id: rows})
