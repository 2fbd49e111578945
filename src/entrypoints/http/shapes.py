"""What is read, as the wire shows it: camelCase keys, nulls written, times in RFC 3339 and UTC with microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson

from casenotes.core.model import AgentStep, Case, DiagnosisRun, Feedback, ToolInvocation
from casenotes.core.text import JsonObject
from casenotes.core.views import (
    Erasure,
    FeedbackReceipt,
    RunSummary,
    RunTrace,
    SessionOverview,
    SessionSummary,
    SummarySource,
)
from casenotes.core.words import RunStatus


def moment(at: datetime) -> str:
    """A time, such as ``2026-12-01T00:00:00.000000Z``."""
    in_utc = at if at.tzinfo is UTC else at.astimezone(UTC)
    if in_utc.microsecond:  # else orjson leaves them out; it takes a third of the time, and a trace has many
        return orjson.dumps(in_utc, option=orjson.OPT_UTC_Z)[1:-1].decode()
    return in_utc.isoformat("T", "microseconds")[: len("2026-12-01T00:00:00.000000")] + "Z"


def moment_or_null(at: datetime | None) -> str | None:
    return None if at is None else moment(at)


def answered(run: DiagnosisRun) -> JsonObject:
    """The answer to ``POST /api/chat``: how the run ended."""
    success = run.status is RunStatus.SUCCESS
    return {
        "success": success,
        "answer": run.answer if success else None,
        "errorMessage": None if success else run.error_message,
        "sessionId": run.session_id,
        "runId": run.run_id,
        "status": str(run.status),
        "agentFlow": str(run.agent_flow),
        "degraded": run.degraded,
        "contextDegraded": run.context_degraded,
    }


def session(summary: SessionSummary) -> JsonObject:
    return {
        "sessionId": summary.session_id,
        "status": str(summary.status),
        "messagePairCount": summary.message_pair_count,
        "createdAt": moment(summary.created_at),
        "lastActiveAt": moment(summary.last_active_at),
        "expiresAt": moment_or_null(summary.expires_at),
        "source": str(summary.source),
    }


def session_overview(overview: SessionOverview) -> JsonObject:
    """A row of the list of sessions: the session summary with its runs in short."""
    chat = overview.session
    summary = SessionSummary(
        session_id=chat.session_id,
        status=chat.status,
        message_pair_count=chat.message_pair_count,
        created_at=chat.created_at,
        last_active_at=chat.last_active_at,
        expires_at=chat.expires_at,
        source=SummarySource.CHAT_SESSION,
    )
    return {
        **session(summary),
        "runCount": overview.run_count,
        "lastRunId": overview.last_run_id,
        "lastQuery": overview.last_query,
    }


def run_summary(run: RunSummary) -> JsonObject:
    return {
        "runId": run.run_id,
        "sessionId": run.session_id,
        "query": run.query,
        "status": str(run.status),
        "agentFlow": str(run.agent_flow),
        "answerPreview": run.answer_preview,
        "stepCount": run.step_count,
        "toolCallCount": run.tool_call_count,
        "createdAt": moment(run.created_at),
        "updatedAt": moment(run.updated_at),
    }


def trace(found: RunTrace) -> JsonObject:
    return {
        "sessionId": found.session_id,
        "runId": found.run_id,
        "session": session(found.session),
        "run": None if found.run is None else _run(found.run),
        "agentSteps": [_step(step) for step in found.agent_steps],
        "toolInvocations": [_tool(tool) for tool in found.tool_invocations],
        "selfEvaluation": found.self_evaluation,
        "answer": found.answer,
        "feedback": None if found.feedback is None else _feedback(found.feedback),
    }


def _run(run: DiagnosisRun) -> JsonObject:
    return {
        "runId": run.run_id,
        "sessionId": run.session_id,
        "query": run.query,
        "status": str(run.status),
        "agentFlow": str(run.agent_flow),
        "errorMessage": run.error_message,
        "stepCount": run.step_count,
        "toolCallCount": run.tool_call_count,
        "createdAt": moment(run.created_at),
        "updatedAt": moment(run.updated_at),
        "finishedAt": moment_or_null(run.finished_at),
        "durationMs": _milliseconds(run.duration),
        "degraded": run.degraded,
        "digest": run.digest,
        "orchestrationTrace": run.orchestration_trace,
    }


def _milliseconds(duration: timedelta | None) -> int | None:
    # Migrated rows may end before they begin: clocks of the old system were set back.
    return None if duration is None else max(0, duration // timedelta(milliseconds=1))


def _step(step: AgentStep) -> JsonObject:
    return {
        "sequence": step.sequence,
        "agentName": step.agent_name,
        "stepType": step.step_type,
        "model": step.model,
        "input": step.input,
        "output": step.output,
        "status": str(step.status),
        "errorMessage": step.error_message,
        "inputTokens": step.input_tokens,
        "outputTokens": step.output_tokens,
        "durationMs": step.duration_ms,
        "createdAt": moment(step.created_at),
    }


def _tool(tool: ToolInvocation) -> JsonObject:
    return {
        "sequence": tool.sequence,
        "stepSequence": tool.step_sequence,
        "toolName": tool.tool_name,
        "arguments": tool.arguments,
        "result": tool.result,
        "resultTruncated": tool.result_truncated,
        "resultSize": tool.result_size,
        "status": str(tool.status),
        "errorMessage": tool.error_message,
        "durationMs": tool.duration_ms,
        "createdAt": moment(tool.created_at),
    }


def _feedback(feedback: Feedback) -> JsonObject:
    return {
        "rating": feedback.rating,
        "comment": feedback.comment,
        "updatedAt": moment_or_null(feedback.updated_at),
    }


def receipt(given: FeedbackReceipt) -> JsonObject:
    """What became of a feedback. Bound to a historical session, it has no ``runId``."""
    shape: JsonObject = {"success": True, "sessionId": given.session_id}
    if given.run_id is not None:
        shape["runId"] = given.run_id
    return {
        **shape,
        "fallbackToLatestRun": given.fallback_to_latest_run,
        "feedback": given.feedback,
        "caseId": given.case_id,
    }


def refused_feedback(session_id: str, message: str) -> JsonObject:
    """The data of a feedback that was bound to nothing."""
    return {
        "success": False,
        "errorMessage": message,
        "sessionId": session_id,
        "fallbackToLatestRun": False,
    }


def case(found: Case) -> JsonObject:
    return {
        "caseId": found.id,
        "diagnosisId": found.diagnosis_id,
        "sessionId": found.session_id,
        "query": found.query,
        "answer": found.answer,
        "source": str(found.source),
        "status": str(found.status),
        "createdAt": moment(found.created_at),
        "updatedAt": moment(found.updated_at),
    }


def erasure(removed: Erasure) -> JsonObject:
    return {
        "sessionId": removed.session_id,
        "runs": removed.runs,
        "agentSteps": removed.agent_steps,
        "toolInvocations": removed.tool_invocations,
        "cases": removed.cases,
    }


def started(run: DiagnosisRun) -> JsonObject:
    """What a stream tells first: the run that was made for the request."""
    return {"sessionId": run.session_id, "runId": run.run_id}
