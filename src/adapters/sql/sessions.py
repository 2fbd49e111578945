"""Chat sessions in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache

import sqlalchemy as sa
from attrs import frozen

from casenotes.adapters.rows import AnyRow, from_row, to_row, utc
from casenotes.adapters.sql.dialect import Dialect, Insert
from casenotes.adapters.sql.tables import UtcDateTime, chat_session, diagnosis_run
from casenotes.adapters.sql.transaction import Transaction
from casenotes.core.errors import SessionNotFound
from casenotes.core.model import ChatSession
from casenotes.core.views import SessionOverview

_session, _run = chat_session.c, diagnosis_run.c

_GET = sa.select(chat_session).where(_session.session_id == sa.bindparam("session_id"))


@cache
def _page(dialect: Dialect, searched: bool, continued: bool) -> sa.Select[tuple[object, ...]]:
    runs = sa.select(_run.run_id).where(_run.session_id == _session.session_id)
    latest = runs.order_by(_run.created_at.desc(), _run.id.desc()).limit(1)
    page = sa.select(
        chat_session,
        runs.with_only_columns(sa.func.count()).scalar_subquery().label("run_count"),
        latest.scalar_subquery().label("last_run_id"),
        latest.with_only_columns(_run.query).scalar_subquery().label("last_query"),
    )
    if searched:
        query = sa.bindparam("query", type_=sa.Text)
        asked = runs.where(dialect.contains(_run.query, query)).exists()
        page = page.where(sa.or_(dialect.contains(_session.session_id, query), asked))
    if continued:
        active = sa.bindparam("active", type_=UtcDateTime)
        page = page.where(
            _session.last_active_at <= active,
            sa.or_(_session.last_active_at < active, _session.session_id > sa.bindparam("before")),
        )
    return page.order_by(_session.last_active_at.desc(), _session.session_id).limit(sa.bindparam("limit"))


@cache
def _ensure(dialect: Dialect) -> Insert:
    return dialect.insert(chat_session).on_conflict_do_nothing(index_elements=["session_id"])


_touched = sa.bindparam("at", type_=UtcDateTime)
_TOUCH = (
    sa.update(chat_session)
    .where(_session.session_id == sa.bindparam("touched_id"))
    .values(
        last_active_at=sa.case((_session.last_active_at < _touched, _touched), else_=_session.last_active_at),
        expires_at=sa.bindparam("expires", type_=UtcDateTime),
        message_pair_count=_session.message_pair_count + sa.bindparam("pairs", type_=sa.Integer),
    )
)


@frozen
class SessionsReader:
    """``casenotes.ports.ledger.SessionsView``."""

    _transaction: Transaction

    async def get(self, session_id: str) -> ChatSession | None:
        row = await self._transaction.one(_GET, {"session_id": session_id})
        return None if row is None else from_row(ChatSession, row)

    async def page(self, *, query: str | None, before: str | None, limit: int) -> Sequence[SessionOverview]:
        values: dict[str, object] = {"limit": limit}
        if query is not None:
            values["query"] = query
        if before is not None:
            last = await self.get(before)
            if last is None:
                raise SessionNotFound(before)
            values |= {"before": before, "active": last.last_active_at}
        statement = _page(self._transaction.dialect, query is not None, before is not None)
        return [_overview(row) for row in await self._transaction.all(statement, values)]


def _overview(row: AnyRow) -> SessionOverview:
    return SessionOverview(
        session=from_row(ChatSession, row),
        run_count=row["run_count"],
        last_run_id=row["last_run_id"],
        last_query=row["last_query"],
    )


@frozen
class SessionsWriter(SessionsReader):
    """``casenotes.ports.ledger.Sessions``."""

    async def ensure(self, session: ChatSession) -> None:
        await self._transaction.run(_ensure(self._transaction.dialect), to_row(session))

    async def touch(
        self, session_id: str, *, at: datetime, expires_at: datetime | None, answered: bool
    ) -> None:
        values = {
            "touched_id": session_id,
            "at": utc(at),
            "expires": None if expires_at is None else utc(expires_at),
            "pairs": int(answered),
        }
        await self._transaction.run(_TOUCH, values)
