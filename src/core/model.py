"""The nouns of the record. All are immutable; all text in them is clean by the way they are made (``core.text``)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypeAlias

from attrs import evolve, frozen

from casenotes.core.errors import InvalidTransition
from casenotes.core.text import (
    Json,
    JsonObject,
    bounded,
    bounded_text,
    clean,
    clean_json,
    clean_name,
    told_count,
)
from casenotes.core.words import AgentFlow, CaseSource, CaseStatus, RunStatus, SessionStatus, StepStatus

RunKey: TypeAlias = tuple[str, str]
"""(session id, run id): how a run is always addressed, so that no session can reach into another."""


@frozen
class MessagePair:
    """One answered turn of a conversation. Lives in the context store only, never in the ledger."""

    question: str
    answer: str


@frozen
class Feedback:
    """A rating with its comment, and when it was given. The rating of a migrated run may be an older word."""

    rating: str
    comment: str | None
    updated_at: datetime | None


@frozen
class ChatSession:
    """A conversation's metadata. It has no field that could hold a message.

    ``message_pair_count`` counts all answered turns, however few the context window keeps.
    """

    session_id: str
    created_at: datetime
    last_active_at: datetime
    status: SessionStatus = SessionStatus.ACTIVE
    message_pair_count: int = 0
    expires_at: datetime | None = None


@frozen
class AgentStep:
    """One step of a run's agent. Made by ``DiagnosisRun.step`` only. ``sequence`` counts from 1 within the run."""

    run_id: str
    session_id: str
    sequence: int
    agent_name: str
    step_type: str
    status: StepStatus
    created_at: datetime
    model: str | None = None
    input: str | None = None
    output: str | None = None
    error_message: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    duration_ms: int | None = None
    id: int | None = None


@frozen
class ToolInvocation:
    """One tool call of a run. Made by ``DiagnosisRun.tool_call`` only. An answer cites it as ``[T<sequence>]``.

    ``step_sequence`` is the step in which the call was made. ``result_size`` is the true size in bytes.
    """

    run_id: str
    session_id: str
    sequence: int
    tool_name: str
    arguments: Json
    result: Json
    status: StepStatus
    created_at: datetime
    step_sequence: int | None = None
    result_truncated: bool = False
    result_size: int | None = None
    error_message: str | None = None
    duration_ms: int | None = None
    id: int | None = None


@frozen
class RunMetrics:
    """How many steps and tool calls a run has, counted from its rows."""

    step_count: int
    tool_call_count: int


@frozen
class Lease:
    """Who executes a running run, and until when that is believed without renewal."""

    owner: str
    expires_at: datetime


@frozen
class DiagnosisRun:
    """One execution: isolated, replayable, auditable.

    ``id`` is assigned by the store; it rises and is never reused. Times are aware and in UTC. ``digest`` is that of
    the run's seal (``core.seal``): a running run has none, nor has one that ended before there were digests.
    """

    run_id: str
    session_id: str
    query: str
    status: RunStatus
    agent_flow: str
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None = None
    answer: str | None = None
    error_message: str | None = None
    self_evaluation: Json = None
    orchestration_trace: Json = None
    feedback: str | None = None
    feedback_comment: str | None = None
    feedback_at: datetime | None = None
    step_count: int = 0
    tool_call_count: int = 0
    degraded: bool = False
    context_degraded: bool = False
    lease_owner: str | None = None
    lease_expires_at: datetime | None = None
    digest: str | None = None
    id: int | None = None

    @classmethod
    def start(
        cls, run_id: str, session_id: str, query: str, agent_flow: AgentFlow, at: datetime, lease: Lease
    ) -> DiagnosisRun:
        """A new run, RUNNING from now, held by its executor's lease."""
        return cls(
            run_id=run_id,
            session_id=session_id,
            query=clean(query),
            status=RunStatus.RUNNING,
            agent_flow=agent_flow,
            created_at=at,
            updated_at=at,
            lease_owner=lease.owner,
            lease_expires_at=lease.expires_at,
        )

    def step(
        self,
        sequence: int,
        agent_name: str,
        at: datetime,
        *,
        step_type: str = "model",
        model: str | None = None,
        input: str | None = None,
        output: str | None = None,
        status: StepStatus = StepStatus.SUCCESS,
        error_message: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        duration_ms: int | None = None,
    ) -> AgentStep:
        """A step of this run: it carries this run's id and session id.

        Input and output are cleaned and bounded, names to less; a count that is no whole number is unknown.
        """
        return AgentStep(
            run_id=self.run_id,
            session_id=self.session_id,
            sequence=sequence,
            agent_name=clean_name(agent_name),
            step_type=clean_name(step_type),
            status=status,
            created_at=at,
            model=None if model is None else clean_name(model),
            input=bounded_text(input),
            output=bounded_text(output),
            error_message=bounded_text(error_message),
            input_tokens=told_count(input_tokens),
            output_tokens=told_count(output_tokens),
            duration_ms=told_count(duration_ms),
        )

    def tool_call(
        self,
        sequence: int,
        tool_name: str,
        at: datetime,
        *,
        arguments: Mapping[str, object] | None = None,
        result: object = None,
        status: StepStatus = StepStatus.SUCCESS,
        error_message: str | None = None,
        step_sequence: int | None = None,
        duration_ms: int | None = None,
    ) -> ToolInvocation:
        """A tool call of this run: it carries this run's id and session id. The result is cleaned and bounded."""
        kept = bounded(result)
        return ToolInvocation(
            run_id=self.run_id,
            session_id=self.session_id,
            sequence=sequence,
            tool_name=clean_name(tool_name),
            arguments=bounded(arguments if isinstance(arguments, Mapping) else {}).value,
            result=kept.value,
            result_truncated=kept.truncated,
            result_size=kept.size,
            status=status,
            created_at=at,
            step_sequence=step_sequence,
            error_message=bounded_text(error_message),
            duration_ms=told_count(duration_ms),
        )

    def succeed(
        self,
        answer: str,
        at: datetime,
        metrics: RunMetrics,
        *,
        degraded: bool = False,
        self_evaluation: JsonObject | None = None,
        orchestration_trace: JsonObject | None = None,
    ) -> DiagnosisRun:
        """This run, ended SUCCESS with its answer. Raises ``InvalidTransition`` unless it is RUNNING."""
        return self._end(
            RunStatus.SUCCESS,
            at,
            metrics,
            self_evaluation,
            orchestration_trace,
            degraded=degraded,
            answer=clean(answer),
        )

    def fail(
        self,
        reason: str,
        at: datetime,
        metrics: RunMetrics,
        *,
        self_evaluation: JsonObject | None = None,
        orchestration_trace: JsonObject | None = None,
    ) -> DiagnosisRun:
        """This run, ended FAILED for a reason that may be shown. Raises ``InvalidTransition`` unless it is RUNNING."""
        return self._end(
            RunStatus.FAILED,
            at,
            metrics,
            self_evaluation,
            orchestration_trace,
            error_message=bounded_text(reason),
        )

    def _end(
        self,
        status: RunStatus,
        at: datetime,
        metrics: RunMetrics,
        self_evaluation: JsonObject | None,
        orchestration_trace: JsonObject | None,
        *,
        degraded: bool = False,
        answer: str | None = None,
        error_message: str | None = None,
    ) -> DiagnosisRun:
        if self.status is not RunStatus.RUNNING:
            raise InvalidTransition(self.run_id)
        return evolve(
            self,
            status=status,
            answer=answer,
            error_message=error_message,
            degraded=degraded,
            self_evaluation=None if self_evaluation is None else clean_json(self_evaluation),
            orchestration_trace=None if orchestration_trace is None else clean_json(orchestration_trace),
            step_count=metrics.step_count,
            tool_call_count=metrics.tool_call_count,
            updated_at=max(at, self.updated_at),
            finished_at=max(at, self.created_at),
            lease_owner=None,
            lease_expires_at=None,
        )

    def rated(self, feedback: Feedback) -> DiagnosisRun:
        """This run with the feedback in place of what was said before: the last word wins."""
        return evolve(
            self,
            feedback=feedback.rating,
            feedback_comment=feedback.comment,
            feedback_at=feedback.updated_at,
            updated_at=max(self.updated_at, feedback.updated_at or self.updated_at),
        )

    @property
    def duration(self) -> timedelta | None:
        """How long the run took, once it has ended."""
        return None if self.finished_at is None else self.finished_at - self.created_at


@frozen
class Case:
    """An answer worth finding again. An ``AUTO`` case's ``diagnosis_id`` is the run id it was made of."""

    diagnosis_id: str
    query: str
    answer: str
    created_at: datetime
    updated_at: datetime
    session_id: str | None = None
    status: CaseStatus = CaseStatus.ACTIVE
    source: CaseSource = CaseSource.AUTO
    id: int | None = None


@frozen
class HistoricalSession:
    """A row of the old system, in which a session and its one diagnosis were the same thing."""

    session_id: str
    query: str | None
    answer: str | None
    status: str | None
    agent_flow: str | None
    created_at: datetime
    updated_at: datetime
    self_evaluation: Json = None
    feedback: str | None = None
    feedback_comment: str | None = None
    step_count: int | None = None
    tool_call_count: int | None = None
    id: int | None = None


@frozen
class IdempotencyKey:
    """A client's promise that requests with this key are one request, and the run that answered the first."""

    key: str
    body_digest: str
    session_id: str
    run_id: str
    created_at: datetime
