"""Chat sessions in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache

import sqlalchemy as sa
from attrs import frozen

from casenotes.adapters.rows import AnyRow, from_row, to_row
from casenotes.adapters.signatures import utc
from casenotes.adapters.sql.dialect import Dialect, Insert
from casenotes.adapters.sql.tables import UtcDateTime, chat_session, diagnosis_run, session_tombstone
from casenotes.adapters.sql.transaction import Transaction
from casenotes.core.errors import SessionNotFound
from casenotes.core.model import ChatSession
from casenotes.core.seal import ChainHead, session_digest
from casenotes.core.views import SessionOverview, Tombstone
from casenotes.core.words import RunStatus

_session, _run = chat_session.c, diagnosis_run.c

_GET = sa.select(chat_session).where(_session.session_id == sa.bindparam("session_id"))
_LOCK_CHAIN = (
    sa.select(_session.ended_run_count.label("count"), _session.last_run_digest.label("digest"))
    .where(_session.session_id == sa.bindparam("session_id"))
    .with_for_update()
)
_TOMBSTONES = (
    sa.select(session_tombstone)
    .where(session_tombstone.c.session_digest == sa.bindparam("of_digest"))
    .order_by(session_tombstone.c.id)
)


is_idle = sa.and_(
    _session.last_active_at < sa.bindparam("idle_since", type_=UtcDateTime),
    ~sa.exists().where(
        _run.session_id == _session.session_id, _run.status == sa.literal_column(f"'{RunStatus.RUNNING}'")
    ),
)
_IDLE = (
    sa.select(_session.session_id)
    .where(is_idle)
    .order_by(_session.last_active_at, _session.session_id)
    .limit(sa.bindparam("limit"))
)


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
def ensuring(dialect: Dialect) -> Insert:
    """Store a session unless it is there. Writes no row then, and keeps the one that is there from others."""
    insert = dialect.insert(chat_session)
    # Unlike DO NOTHING, this locks a row of which it changes nothing.
    return insert.on_conflict_do_update(
        index_elements=["session_id"], set_={"session_id": insert.excluded.session_id}, where=sa.false()
    )


@cache
def using(dialect: Dialect) -> Insert:
    """Store a session, or mark activity on the one that is there."""
    insert = dialect.insert(chat_session)
    given, stored = insert.excluded, _session
    return insert.on_conflict_do_update(
        index_elements=["session_id"],
        set_={
            "last_active_at": sa.case(
                (stored.last_active_at < given.last_active_at, given.last_active_at),
                else_=stored.last_active_at,
            ),
            "expires_at": given.expires_at,
        },
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

    async def tombstones(self, session_id: str) -> Sequence[Tombstone]:
        rows = await self._transaction.all(_TOMBSTONES, {"of_digest": session_digest(session_id)})
        return [from_row(Tombstone, row) for row in rows]

    async def idle(self, *, since: datetime, limit: int) -> Sequence[str]:
        rows = await self._transaction.all(_IDLE, {"idle_since": utc(since), "limit": limit})
        return [row["session_id"] for row in rows]


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
        await self._transaction.run(ensuring(self._transaction.dialect), to_row(session))

    async def use(self, session: ChatSession) -> None:
        await self._transaction.run(using(self._transaction.dialect), to_row(session))

    async def lock_chain(self, session_id: str) -> ChainHead:
        row = await self._transaction.one(_LOCK_CHAIN, {"session_id": session_id})
        return ChainHead() if row is None else ChainHead(**row)
