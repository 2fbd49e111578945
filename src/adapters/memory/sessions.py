"""Chat sessions in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from attrs import frozen

from casenotes.adapters.memory.state import Draft, Snapshot, State
from casenotes.adapters.rows import Row, from_row, to_row
from casenotes.adapters.signatures import utc
from casenotes.core.errors import SessionNotFound
from casenotes.core.model import ChatSession
from casenotes.core.seal import ChainHead, session_digest
from casenotes.core.views import SessionOverview, Tombstone


@frozen
class SessionsReader:
    """``casenotes.ports.ledger.SessionsView``."""

    _snapshot: Snapshot

    async def get(self, session_id: str) -> ChatSession | None:
        row = self._snapshot.state.sessions.get(session_id)
        return None if row is None else from_row(ChatSession, row)

    async def page(self, *, query: str | None, before: str | None, limit: int) -> Sequence[SessionOverview]:
        state = self._snapshot.state
        rows = sorted(state.sessions.values(), key=lambda row: row["session_id"])
        rows.sort(key=lambda row: row["last_active_at"], reverse=True)  # stable: ids stay in rising order
        if before is not None:
            if before not in state.sessions:
                raise SessionNotFound(before)
            rows = rows[rows.index(state.sessions[before]) + 1 :]
        if query is not None:
            rows = [row for row in rows if _mentions(state, row["session_id"], query)]
        return [_overview(state, row) for row in rows[:limit]]

    async def tombstones(self, session_id: str) -> Sequence[Tombstone]:
        name = session_digest(session_id)
        rows = self._snapshot.state.tombstones
        return [from_row(Tombstone, row) for row in rows if row["session_digest"] == name]

    async def idle(self, *, since: datetime, limit: int) -> Sequence[str]:
        state, moment = self._snapshot.state, utc(since)
        rows = [row for name, row in state.sessions.items() if state.is_idle(name, moment)]
        rows.sort(key=lambda row: (row["last_active_at"], row["session_id"]))
        return [row["session_id"] for row in rows[:limit]]


def _mentions(state: State, session_id: str, query: str) -> bool:
    texts = [session_id, *(row["query"] for row in state.runs_in(session_id))]
    return any(query.lower() in text.lower() for text in texts)


def _overview(state: State, row: Row) -> SessionOverview:
    runs = state.runs_in(row["session_id"])
    return SessionOverview(
        session=from_row(ChatSession, row),
        run_count=len(runs),
        last_run_id=runs[0]["run_id"] if runs else None,
        last_query=runs[0]["query"] if runs else None,
    )


@frozen
class SessionsWriter(SessionsReader):
    """``casenotes.ports.ledger.Sessions``."""

    _snapshot: Draft

    async def ensure(self, session: ChatSession) -> None:
        row = to_row(session)
        if session.session_id not in self._snapshot.state.sessions:
            self._put(row)

    async def use(self, session: ChatSession) -> None:
        given = to_row(session)
        stored = self._snapshot.state.sessions.get(session.session_id, given)
        active = max(stored["last_active_at"], given["last_active_at"])
        self._put({**stored, "last_active_at": active, "expires_at": given["expires_at"]})

    async def lock_chain(self, session_id: str) -> ChainHead:
        return self._snapshot.state.chains.get(session_id, ChainHead())

    def _put(self, row: Row) -> None:
        self._snapshot.replace(sessions={**self._snapshot.state.sessions, row["session_id"]: row})
