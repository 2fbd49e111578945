"""How a session leaves an SQL ledger."""

from __future__ import annotations

import sqlalchemy as sa

from casenotes.adapters.sql.tables import (
    agent_step,
    case_library,
    chat_session,
    diagnosis_run,
    diagnosis_session,
    idempotency_key,
    tool_invocation,
)
from casenotes.adapters.sql.transaction import Transaction
from casenotes.core.views import Erasure

_session_id = sa.bindparam("of_session", type_=sa.Text)
_case = case_library.c


def _delete(table: sa.Table) -> sa.Delete:
    return sa.delete(table).where(table.c.session_id == _session_id)


_LOCK_RUNS = (
    sa.select(diagnosis_run.c.run_id).where(diagnosis_run.c.session_id == _session_id).with_for_update()
)
_CASES = sa.delete(case_library).where(
    sa.or_(
        _case.session_id == _session_id,
        sa.and_(_case.source != "AUTO", _case.diagnosis_id == _session_id),  # the old system named a case so
        sa.and_(
            _case.source == "AUTO",
            _case.diagnosis_id.in_(
                sa.select(diagnosis_run.c.run_id).where(diagnosis_run.c.session_id == _session_id)
            ),
        ),
    )
)
_RUNS = _delete(diagnosis_run)
_STEPS = _delete(agent_step)
_TOOLS = _delete(tool_invocation)
_KEYS = _delete(idempotency_key)
_CHAT = _delete(chat_session)
_HISTORY = _delete(diagnosis_session)


async def erase_session(transaction: Transaction, session_id: str) -> Erasure | None:
    """Remove all that belongs to a session; ``None`` when nothing does."""
    session = {"of_session": session_id}
    # The old row goes first: a migration that is placing it in a run is waited for, and its run goes too. Then the
    # runs are locked before anything of theirs goes, so that nobody adds to what is being removed.
    old = await transaction.run(_HISTORY, session)
    await transaction.all(_LOCK_RUNS, session)
    cases = await transaction.run(_CASES, session)
    runs = await transaction.run(_RUNS, session)
    steps = await transaction.run(_STEPS, session)
    tools = await transaction.run(_TOOLS, session)
    others = [await transaction.run(statement, session) for statement in (_KEYS, _CHAT)]
    if not any((old, cases, runs, steps, tools, *others)):
        return None
    return Erasure(session_id=session_id, runs=runs, agent_steps=steps, tool_invocations=tools, cases=cases)
