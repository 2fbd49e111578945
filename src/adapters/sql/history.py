"""The old system's sessions in SQL."""

from __future__ import annotations

import sqlalchemy as sa
from attrs import frozen

from casenotes.adapters.rows import feedback_row, from_row, historical_trace
from casenotes.adapters.sql.tables import agent_step, diagnosis_session, tool_invocation
from casenotes.adapters.sql.transaction import Transaction
from casenotes.core.errors import SessionNotFound
from casenotes.core.model import Feedback, HistoricalSession
from casenotes.core.views import HistoricalTrace

_historical = diagnosis_session.c

_latest_first = (_historical.created_at.desc(), _historical.id.desc())
_LATEST = (
    sa.select(diagnosis_session)
    .where(_historical.session_id == sa.bindparam("of_session"))
    .order_by(*_latest_first)
    .limit(1)
)
_FEEDBACK = sa.update(diagnosis_session).where(
    _historical.id == _LATEST.with_only_columns(_historical.id).scalar_subquery()
)


def _unplaced(table: sa.Table) -> sa.Select[tuple[object, ...]]:
    return sa.select(table).where(table.c.session_id == sa.bindparam("of_session"), table.c.run_id.is_(None))


_UNPLACED_STEPS = _unplaced(agent_step)
_UNPLACED_TOOLS = _unplaced(tool_invocation)


@frozen
class HistoryReader:
    """``casenotes.ports.ledger.HistoryView``."""

    _transaction: Transaction

    async def get(self, session_id: str) -> HistoricalSession | None:
        row = await self._transaction.one(_LATEST, {"of_session": session_id})
        return None if row is None else from_row(HistoricalSession, row)

    async def trace(self, session_id: str) -> HistoricalTrace | None:
        session = {"of_session": session_id}
        row = await self._transaction.one(_LATEST, session)
        if row is None:
            return None
        steps = await self._transaction.all(_UNPLACED_STEPS, session)
        tools = await self._transaction.all(_UNPLACED_TOOLS, session)
        return historical_trace(row, steps, tools)


@frozen
class HistoryWriter(HistoryReader):
    """``casenotes.ports.ledger.History``."""

    async def set_feedback(self, session_id: str, feedback: Feedback) -> None:
        given = feedback_row(feedback)
        changes = {name: given[name] for name in ("feedback", "feedback_comment")}
        if await self._transaction.run(_FEEDBACK, {**changes, "of_session": session_id}) == 0:
            raise SessionNotFound(session_id)
