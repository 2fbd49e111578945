"""The decisions, each a pure function and each in this one place. The SQL of an adapter follows them."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias

from attrs import frozen

from casenotes.core.errors import InvalidInput, NotFound, RunNotFound, SessionNotFound
from casenotes.core.model import Case, ChatSession, DiagnosisRun, Feedback, HistoricalSession, Lease
from casenotes.core.text import clean_optional, fold
from casenotes.core.views import SessionSummary, SummarySource
from casenotes.core.words import AgentFlow, CaseStatus, Rating, RunStatus, SessionStatus

MAX_QUESTION = 32_000
"""The most characters of a question."""

MAX_SESSION_ID = 128
PREVIEW_LENGTH = 200
COMPATIBILITY_PREFIX = "run-legacy-"
COMPATIBILITY_DIGITS = 32
_ID_PUNCTUATION = frozenset("._:@+=~-")
_INVESTIGATION = re.compile(
    r"\b(?:why|cause[sd]?|reason|root|diagnos\w*|investigat\w*|wrong|explain|fault|fail\w*|slow\w*|broken|down)\b",
    re.IGNORECASE,
)


def recency(run: DiagnosisRun) -> tuple[datetime, int]:
    """The total order of runs: by ``created_at``, then by the id that the store assigned.

    Source: "resolve the latest run for that session by diagnosis_run.created_at DESC, id DESC".
    """
    return (run.created_at, run.id or 0)


def latest_run(runs: Iterable[DiagnosisRun]) -> DiagnosisRun | None:
    """The newest of these runs, ``None`` of none."""
    return max(runs, key=recency, default=None)


def owned(run: DiagnosisRun | None, session_id: str, run_id: str) -> DiagnosisRun:
    """The run, if it belongs to the session. Raises ``RunNotFound`` else: absent and foreign look the same."""
    if run is None or run.session_id != session_id or run.run_id != run_id:
        raise RunNotFound(session_id, run_id)
    return run


def compatibility_run_id(session_id: str) -> str:
    """The id of the run that a migration makes of the old system's session: the same in every process."""
    return COMPATIBILITY_PREFIX + hashlib.sha256(session_id.encode()).hexdigest()[:COMPATIBILITY_DIGITS]


@frozen
class BoundToRun:
    """Feedback goes to this run; ``fell_back`` when the caller named none and the latest was taken."""

    run: DiagnosisRun
    fell_back: bool


@frozen
class BoundToHistory:
    """Feedback goes to the historical row: the session has no run."""

    session: HistoricalSession


@frozen
class Unbound:
    """Feedback goes nowhere, for this reason."""

    reason: NotFound


Binding: TypeAlias = BoundToRun | BoundToHistory | Unbound


def bind_feedback(
    session_id: str,
    requested: str | None,
    candidate: DiagnosisRun | None,
    historical: HistoricalSession | None,
) -> Binding:
    """What a feedback is bound to.

    ``candidate`` is the run with the requested id, or the session's latest when none was requested.
    Source: "Feedback SHALL bind to diagnosis runs". A requested run that is not the session's never falls back.
    """
    if requested is not None:
        try:
            return BoundToRun(owned(candidate, session_id, requested), fell_back=False)
        except RunNotFound as absent:
            return Unbound(absent)
    if candidate is not None:
        return BoundToRun(candidate, fell_back=True)
    if historical is not None:
        return BoundToHistory(historical)
    return Unbound(SessionNotFound(session_id))


def feedback(rating: str, comment: str | None, at: datetime) -> Feedback:
    """A feedback as it may be stored. Raises ``InvalidInput`` for a rating that is not one."""
    try:
        known = Rating(rating)
    except ValueError:
        allowed = " or ".join(repr(str(one)) for one in Rating)
        raise InvalidInput("feedback", f"must be {allowed}") from None
    return Feedback(str(known), clean_optional(comment), at)


def case_for(run: DiagnosisRun, at: datetime) -> Case | None:
    """The case that a run rated useful makes: ``None`` while it has no answer, or is not rated so.

    Source: "Useful feedback creates case from run"; ``diagnosis_id`` is the run id.
    """
    if run.feedback != Rating.USEFUL or run.answer is None:
        return None
    return Case(
        diagnosis_id=run.run_id,
        query=run.query,
        answer=run.answer,
        created_at=at,
        updated_at=at,
        session_id=run.session_id,
        status=CaseStatus.ACTIVE,
    )


def counts_as_turn(run: DiagnosisRun) -> bool:
    """Whether a run adds a pair to its conversation: it was answered, and was not an AIOps run."""
    return run.status is RunStatus.SUCCESS and run.agent_flow != AgentFlow.AI_OPS


def session_status(expires_at: datetime | None, now: datetime) -> SessionStatus:
    """EXPIRED once the conversation's time has passed, else ACTIVE."""
    return SessionStatus.EXPIRED if expires_at is not None and expires_at <= now else SessionStatus.ACTIVE


def session_summary(
    session_id: str,
    chat: ChatSession | None,
    run: DiagnosisRun | None,
    historical: HistoricalSession | None,
    now: datetime,
) -> SessionSummary:
    """A session in short, from the best row there is. Raises ``SessionNotFound`` when there is none.

    Source: "the session summary SHALL come from chat_session metadata when available".
    """
    if chat is not None:
        return SessionSummary(
            session_id=chat.session_id,
            status=session_status(chat.expires_at, now),
            message_pair_count=chat.message_pair_count,
            created_at=chat.created_at,
            last_active_at=chat.last_active_at,
            expires_at=chat.expires_at,
            source=SummarySource.CHAT_SESSION,
        )
    row = run or historical
    if row is None:
        raise SessionNotFound(session_id)
    return SessionSummary(
        session_id=row.session_id,
        status=SessionStatus.ACTIVE,
        message_pair_count=0 if row.answer is None else 1,
        created_at=row.created_at,
        last_active_at=row.updated_at,
        expires_at=None,
        source=SummarySource.DIAGNOSIS_SESSION if run is None else SummarySource.DIAGNOSIS_RUN,
    )


def answer_preview(answer: str | None) -> str | None:
    """At most 200 characters of an answer on one line."""
    return None if answer is None else fold(answer, PREVIEW_LENGTH)


def route(requested: str, question: str) -> AgentFlow:
    """The flow that answers a question: the one requested (``chat``, ``graph``), or with ``auto`` the fitting one.

    A question for a cause, or a long one, is complex and goes through the graph. Raises ``InvalidInput``.
    """
    match requested:
        case "chat":
            return AgentFlow.CHAT
        case "graph":
            return AgentFlow.STATE_GRAPH
        case "auto":
            investigates = len(question) > 400 or _INVESTIGATION.search(question) is not None
            return AgentFlow.STATE_GRAPH if investigates else AgentFlow.CHAT
        case _:
            raise InvalidInput("flow", "must be 'auto', 'chat' or 'graph'")


def is_new_session_id(session_id: str) -> bool:
    """Whether a session may be created with this id.

    1 to 128 characters, each a letter, mark or digit of any script or one of ``. _ : @ + = ~ -``, with at least
    one letter or digit. Stored ids of any form can be read.
    """
    if not 1 <= len(session_id) <= MAX_SESSION_ID:
        return False
    kinds = [unicodedata.category(character)[0] for character in session_id]
    allowed = (k in "LMN" or c in _ID_PUNCTUATION for k, c in zip(kinds, session_id, strict=True))
    return all(allowed) and any(kind in "LN" for kind in kinds)


def check_question(question: object) -> str:
    """The question, if it is one. Raises ``InvalidInput`` naming ``question``."""
    if not isinstance(question, str):
        raise InvalidInput("question", "must be a string")
    if not question.strip():
        raise InvalidInput("question", "must not be blank")
    if len(question) > MAX_QUESTION:
        raise InvalidInput("question", f"must have at most {MAX_QUESTION:,} characters")
    return question


def check_alerts(alerts: object) -> tuple[Mapping[str, object], ...] | None:
    """A list of alert objects, or ``None``. Raises ``InvalidInput`` naming ``alerts``."""
    if alerts is None:
        return None
    if not isinstance(alerts, list) or not all(isinstance(alert, dict) for alert in alerts):
        raise InvalidInput("alerts", "must be a list of objects")
    return tuple(alerts)


def lease_until(owner: str, now: datetime, period: timedelta) -> Lease:
    """The lease that an executor takes or renews now."""
    return Lease(owner, now + period)


def lease_expired(run: DiagnosisRun, now: datetime) -> bool:
    """Whether a running run's executor is believed dead: its lease ended before now, or it has none."""
    if run.status is not RunStatus.RUNNING:
        return False
    return run.lease_expires_at is None or run.lease_expires_at < now
