"""How a session leaves an SQL ledger."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from casenotes.adapters.rows import to_row
from casenotes.adapters.signatures import utc
from casenotes.adapters.sql.sessions import ensuring, is_idle
from casenotes.adapters.sql.tables import (
    agent_step,
    case_library,
    chat_session,
    diagnosis_run,
    diagnosis_session,
    idempotency_key,
    is_automatic,
    session_tombstone,
    tool_invocation,
)
from casenotes.adapters.sql.transaction import Transaction
from casenotes.core.model import ChatSession
from casenotes.core.seal import session_digest
from casenotes.core.views import Erasure, Tombstone

_session_id = sa.bindparam("of_session", type_=sa.Text)
_case = case_library.c


def _delete(table: sa.Table) -> sa.Delete:
    return sa.delete(table).where(table.c.session_id == _session_id)


_LOCK_RUNS = (  # in the order in which whoever locks several runs does
    sa.select(diagnosis_run.c.run_id)
    .where(diagnosis_run.c.session_id == _session_id)
    .order_by(diagnosis_run.c.run_id)
    .with_for_update()
)
_LOCK_HISTORY = (
    sa.select(diagnosis_session.c.id).where(diagnosis_session.c.session_id == _session_id).with_for_update()
)
_LOCK_CHAT = (
    sa.select(chat_session.c.ended_run_count, chat_session.c.last_run_digest)
    .where(chat_session.c.session_id == _session_id)
    .with_for_update()
)
_LOCK_IDLE = _LOCK_CHAT.where(is_idle)
_is_historical = _case.source != sa.literal_column("'AUTO'")
_runs = sa.select(diagnosis_run.c.run_id).where(diagnosis_run.c.session_id == _session_id)
# Each part finds its cases by an index of its own: one condition with all three would be looked for in every case.
_CASES = sa.delete(case_library).where(
    _case.id.in_(
        sa.union_all(
            sa.select(_case.id).where(_case.session_id == _session_id),
            # The old system named a case by its session.
            sa.select(_case.id).where(_is_historical, _case.diagnosis_id == _session_id),
            sa.select(_case.id).where(is_automatic, _case.diagnosis_id.in_(_runs)),
        )
    )
)
_RUNS = _delete(diagnosis_run)
_STEPS = _delete(agent_step)
_TOOLS = _delete(tool_invocation)
_KEYS = _delete(idempotency_key)
_CHAT = _delete(chat_session)
_HISTORY = _delete(diagnosis_session)


async def erase_session(
    transaction: Transaction, session_id: str, at: datetime, idle_since: datetime | None
) -> Erasure | None:
    """Remove all that belongs to a session, and remember that; ``None`` when nothing does, or it is not idle."""
    session, erased_at = {"of_session": session_id}, utc(at)
    # All is locked before anything goes. The old row first: a migration that is placing it in a run is waited for,
    # and its run goes too. Then the session, so that no run begins or ends; last its runs, so that nobody adds to
    # them, and none is rated while its cases go.
    await transaction.all(_LOCK_HISTORY, session)
    placed = 0
    if idle_since is None:
        head = await transaction.one(_LOCK_CHAT, session)
        if head is None:
            # Whoever begins the session anew meanwhile must wait too: there has to be a row to wait for.
            row = to_row(ChatSession(session_id, created_at=at, last_active_at=at))
            placed = await transaction.run(ensuring(transaction.dialect), row)
            head = await transaction.one(_LOCK_CHAT, session)
    elif (head := await transaction.one(_LOCK_IDLE, session | {"idle_since": utc(idle_since)})) is None:
        return None
    await transaction.all(_LOCK_RUNS, session)
    old = await transaction.run(_HISTORY, session)
    cases = await transaction.run(_CASES, session)
    runs = await transaction.run(_RUNS, session)
    steps = await transaction.run(_STEPS, session)
    tools = await transaction.run(_TOOLS, session)
    keys = await transaction.run(_KEYS, session)
    chats = await transaction.run(_CHAT, session) - placed
    if not any((old, cases, runs, steps, tools, keys, chats)):
        return None
    tombstone = Tombstone(
        session_digest=session_digest(session_id),
        runs=runs,
        agent_steps=steps,
        tool_invocations=tools,
        cases=cases,
        ended_run_count=0 if head is None else head["ended_run_count"],
        last_run_digest=None if head is None else head["last_run_digest"],
        erased_at=erased_at,
    )
    await transaction.run(sa.insert(session_tombstone), to_row(tombstone))
    return Erasure(session_id=session_id, runs=runs, agent_steps=steps, tool_invocations=tools, cases=cases)
