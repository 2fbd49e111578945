"""Runs in SQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import Final

import sqlalchemy as sa
from attrs import frozen
from sqlalchemy.sql import Executable

from casenotes.adapters.rows import (
    ENDING_COLUMNS,
    AnyRow,
    Row,
    ending_row,
    feedback_row,
    from_row,
    run_summary,
    to_row,
)
from casenotes.adapters.signatures import utc
from casenotes.adapters.sql.dialect import Dialect
from casenotes.adapters.sql.tables import UtcDateTime, chat_session, diagnosis_run, run_columns
from casenotes.adapters.sql.transaction import Transaction
from casenotes.core.errors import InvalidTransition, RunAlreadyExists, RunNotFound
from casenotes.core.model import DiagnosisRun, Feedback, RunKey
from casenotes.core.rules import PREVIEW_LENGTH, counts_as_turn
from casenotes.core.seal import ChainHead, RunSeal
from casenotes.core.text import fold
from casenotes.core.views import RunSummary
from casenotes.core.words import RunStatus

_run = diagnosis_run.c

_of_session = _run.session_id == sa.bindparam("of_session", type_=sa.Text)
_this_run = sa.and_(_of_session, _run.run_id == sa.bindparam("of_run", type_=sa.Text))
_is_running = _run.status == sa.literal_column(f"'{RunStatus.RUNNING}'")  # as the lease index has it
newest_first = (_run.created_at.desc(), _run.id.desc())

_GET = sa.select(*run_columns).where(_this_run)
_LATEST = sa.select(*run_columns).where(_of_session).order_by(*newest_first).limit(1)
_LOCK = _GET.with_for_update()
# The session's row is locked before the run's, as by whoever erases them: rows are locked in the order of the FROM.
_TO_END = (
    sa.select(
        *run_columns,
        chat_session.c.ended_run_count.label("chain_count"),
        chat_session.c.last_run_digest.label("chain_digest"),
    )
    .select_from(chat_session)
    .join(diagnosis_run, chat_session.c.session_id == _run.session_id)
    .where(_this_run)
)
_LOCK_TO_END = _TO_END.with_for_update()
LOCK_TO_END_IF_FREE = _TO_END.with_for_update(skip_locked=True)
"""As ``lock_to_end`` does, but for a run that others hold, or its session, it gives nothing and does not wait."""
_LOCK_LATEST = _LATEST.with_for_update()
_STATUS = sa.select(_run.status).where(_this_run)
_POSITION = sa.select(_run.created_at, _run.id).where(_this_run)
_ANSWER = sa.select(_run.answer).where(_this_run)

_START_CHARS: Final = 5 * PREVIEW_LENGTH
"""How much of an answer is read for its preview: enough, unless most of it is white space."""

_FIRST_PAGE = (
    sa.select(
        _run.run_id,
        _run.session_id,
        _run.query,
        _run.status,
        _run.agent_flow,
        sa.func.substr(_run.answer, 1, _START_CHARS).label("answer_start"),
        _run.step_count,
        _run.tool_call_count,
        _run.created_at,
        _run.updated_at,
    )
    .where(_of_session)
    .order_by(*newest_first)
    .limit(sa.bindparam("limit"))
)
_NEXT_PAGE = _FIRST_PAGE.where(
    sa.tuple_(_run.created_at, _run.id)
    < sa.tuple_(sa.bindparam("created_at", type_=UtcDateTime), sa.bindparam("id", type_=sa.BigInteger))
)

# A running run without a lease has nobody who executes it: ``core.rules.lease_expired``.
_lease_is_over = sa.or_(
    _run.lease_expires_at.is_(None), _run.lease_expires_at < sa.bindparam("now", type_=UtcDateTime)
)
_EXPIRED = (
    sa.select(*run_columns)
    .where(_is_running, _lease_is_over)
    .order_by(_run.lease_expires_at.asc().nulls_first(), _run.id)
    .limit(sa.bindparam("limit"))
)

_is_next = sa.and_(
    chat_session.c.session_id == sa.bindparam("of_session", type_=sa.Text),
    chat_session.c.ended_run_count == sa.bindparam("position", type_=sa.Integer) - 1,
)
_active_at = sa.bindparam("active_at", type_=UtcDateTime)
_MOVE_HEAD = (
    sa.update(chat_session)
    .where(_is_next)
    .values(
        ended_run_count=sa.bindparam("position"),
        last_run_digest=sa.bindparam("of_digest"),
        last_active_at=sa.case(
            (chat_session.c.last_active_at < _active_at, _active_at), else_=chat_session.c.last_active_at
        ),
        expires_at=sa.func.coalesce(sa.bindparam("expires", type_=UtcDateTime), chat_session.c.expires_at),
        message_pair_count=chat_session.c.message_pair_count + sa.bindparam("pairs", type_=sa.Integer),
    )
)
# The head moves only for a run that will end by it: what stands in WITH is done even if nothing comes of the rest.
_moved = (
    _MOVE_HEAD.where(sa.exists().where(_this_run, _is_running))
    .returning(chat_session.c.session_id)
    .cte("moved")
)
# The names of the values are not those of the columns: else they would be taken for columns of the session too.
_ENDED = (
    sa.update(diagnosis_run)
    .where(_this_run, _is_running)
    .values({name: sa.bindparam(f"run.{name}", type_=_run[name].type) for name in ENDING_COLUMNS})
)
_END = _ENDED.where(sa.exists().where(_is_next))
END_AND_MOVE_HEAD = _ENDED.where(sa.exists().select_from(_moved)).returning(_run.run_id)
"""Ends a run, for the values of ``end_values``, where one statement may write to several tables."""

_CONTEXT_DEGRADED = sa.update(diagnosis_run).where(_this_run).values(context_degraded=True)
_FEEDBACK = sa.update(diagnosis_run).where(_this_run)
_feedback_at = sa.bindparam("raised_to", type_=UtcDateTime)
_FEEDBACK_NOW = _FEEDBACK.values(
    updated_at=sa.case((_run.updated_at < _feedback_at, _feedback_at), else_=_run.updated_at)
)
_until = sa.bindparam("until", type_=UtcDateTime)
_renewable = sa.and_(
    sa.tuple_(_run.session_id, _run.run_id).in_(sa.bindparam("keys", expanding=True)),
    _is_running,
    _run.lease_owner == sa.bindparam("owner"),
)
# What others hold is passed over: one run must not keep the leases of all others from being renewed.
_LOCK_RENEWABLE = sa.select(_run.session_id, _run.run_id).where(_renewable).with_for_update(skip_locked=True)
_RENEW = (
    sa.update(diagnosis_run)
    .where(_renewable)
    .values(lease_expires_at=sa.case((_run.lease_expires_at > _until, _run.lease_expires_at), else_=_until))
    .returning(_run.session_id, _run.run_id)
)


@cache
def _add(dialect: Dialect) -> Executable:
    return dialect.insert(diagnosis_run).on_conflict_do_nothing().returning(_run.id)


def this_run(session_id: str, run_id: str) -> dict[str, object]:
    """The values that name a run in the statements on runs."""
    return {"of_session": session_id, "of_run": run_id}


def end_values(run: DiagnosisRun, seal: RunSeal, expires_at: datetime | None) -> Row:
    """The values of the statements that end a run. Raises as ``ending_row`` does."""
    changes = ending_row(run, seal)
    return {
        **{f"run.{name}": value for name, value in changes.items()},
        **this_run(run.session_id, run.run_id),
        "position": seal.position,
        "of_digest": seal.digest,
        "active_at": changes["finished_at"],
        "expires": None if expires_at is None else utc(expires_at),
        "pairs": int(counts_as_turn(run)),
    }


async def why_not_running(transaction: Transaction, session_id: str, run_id: str) -> Exception | None:
    """``RunNotFound`` or ``InvalidTransition``, or ``None`` when the run is RUNNING."""
    row = await transaction.one(_STATUS, this_run(session_id, run_id))
    if row is None:
        return RunNotFound(session_id, run_id)
    return None if row["status"] == RunStatus.RUNNING else InvalidTransition(run_id)


async def has_run(transaction: Transaction, session_id: str, run_id: str) -> bool:
    """Whether there is this run, asked in one statement, without a transaction around it."""
    _, rows = await transaction.alone(_STATUS, this_run(session_id, run_id))
    return len(rows) > 0


@frozen
class RunsReader:
    """``casenotes.ports.ledger.RunsView``."""

    _transaction: Transaction

    async def get(self, session_id: str, run_id: str) -> DiagnosisRun | None:
        return _model(await self._transaction.one(_GET, this_run(session_id, run_id)))

    async def latest(self, session_id: str) -> DiagnosisRun | None:
        return _model(await self._transaction.one(_LATEST, {"of_session": session_id}))

    async def page(self, session_id: str, *, before: str | None, limit: int) -> Sequence[RunSummary]:
        statement, values = _FIRST_PAGE, {"of_session": session_id, "limit": limit}
        if before is not None:
            position = await self._transaction.one(_POSITION, this_run(session_id, before))
            if position is None:
                raise RunNotFound(session_id, before)
            statement, values = _NEXT_PAGE, {**values, **position}
        rows = await self._transaction.all(statement, values)
        return [run_summary(row, await self._enough_of_answer(row)) for row in rows]

    async def _enough_of_answer(self, row: AnyRow) -> str | None:
        """The start of the answer if it fills the preview, else the whole."""
        start: str | None = row["answer_start"]
        if start is None or len(start) < _START_CHARS or len(fold(start, _START_CHARS)) > PREVIEW_LENGTH:
            return start
        whole = await self._transaction.one(_ANSWER, this_run(row["session_id"], row["run_id"]))
        return start if whole is None else whole["answer"]

    async def expired(self, *, now: datetime, limit: int) -> Sequence[DiagnosisRun]:
        rows = await self._transaction.all(_EXPIRED, {"now": utc(now), "limit": limit})
        return [from_row(DiagnosisRun, row) for row in rows]


@frozen
class RunsWriter(RunsReader):
    """``casenotes.ports.ledger.Runs``."""

    async def add(self, run: DiagnosisRun) -> DiagnosisRun:
        row = to_row(run)
        stored = await self._transaction.one(_add(self._transaction.dialect), row)
        if stored is None:
            raise RunAlreadyExists(run.run_id)
        return from_row(DiagnosisRun, row | stored)

    async def lock(self, session_id: str, run_id: str) -> DiagnosisRun | None:
        return _model(await self._transaction.one(_LOCK, this_run(session_id, run_id)))

    async def lock_to_end(self, session_id: str, run_id: str) -> tuple[DiagnosisRun, ChainHead] | None:
        row = await self._transaction.one(_LOCK_TO_END, this_run(session_id, run_id))
        if row is None:
            return None
        return from_row(DiagnosisRun, row), ChainHead(row["chain_count"], row["chain_digest"])

    async def lock_latest(self, session_id: str) -> DiagnosisRun | None:
        return _model(await self._transaction.one(_LOCK_LATEST, {"of_session": session_id}))

    async def end(self, run: DiagnosisRun, seal: RunSeal, *, expires_at: datetime | None) -> None:
        if not await self._end(run, seal, expires_at):
            reason = await why_not_running(self._transaction, run.session_id, run.run_id)
            raise reason or ValueError("the seal does not continue the chain of its session")

    async def _end(self, run: DiagnosisRun, seal: RunSeal, expires_at: datetime | None) -> bool:
        values, transaction = end_values(run, seal, expires_at), self._transaction
        if transaction.dialect.writes_within:
            return await transaction.run(END_AND_MOVE_HEAD, values) > 0
        return await transaction.run(_END, values) > 0 and await transaction.run(_MOVE_HEAD, values) > 0

    async def set_context_degraded(self, session_id: str, run_id: str) -> None:
        if await self._transaction.run(_CONTEXT_DEGRADED, this_run(session_id, run_id)) == 0:
            raise RunNotFound(session_id, run_id)

    async def set_feedback(self, session_id: str, run_id: str, feedback: Feedback) -> None:
        changes, run = feedback_row(feedback), this_run(session_id, run_id)
        at = changes["feedback_at"]
        statement, raised = (_FEEDBACK, {}) if at is None else (_FEEDBACK_NOW, {"raised_to": at})
        if await self._transaction.run(statement, changes | run | raised) == 0:
            raise RunNotFound(session_id, run_id)

    async def renew(self, runs: Collection[RunKey], *, owner: str, until: datetime) -> frozenset[RunKey]:
        keys: Collection[RunKey] = runs
        if self._transaction.dialect.locks_rows:
            keys = _keys(await self._transaction.all(_LOCK_RENEWABLE, {"keys": list(runs), "owner": owner}))
        if not keys:
            return frozenset()
        held = {"keys": list(keys), "owner": owner, "until": utc(until)}
        return _keys(await self._transaction.all(_RENEW, held))


def _keys(rows: Sequence[AnyRow]) -> frozenset[RunKey]:
    return frozenset((row["session_id"], row["run_id"]) for row in rows)


def _model(row: AnyRow | None) -> DiagnosisRun | None:
    return None if row is None else from_row(DiagnosisRun, row)
