"""Reads of the service in the shape of the model's."""

from __future__ import annotations

from typing import Any

from casenotes.core.model import AgentStep, Case, ChatSession, ToolInvocation
from casenotes.core.service.reading import Reading
from casenotes.core.views import RunSummary, RunTrace, SessionOverview, SessionSummary, SummarySource


def session(seen: SessionSummary | ChatSession) -> dict[str, Any]:
    if isinstance(seen, SessionSummary):
        assert seen.source is SummarySource.CHAT_SESSION
    return {
        "session_id": seen.session_id,
        "status": str(seen.status),
        "message_pair_count": seen.message_pair_count,
        "created_at": seen.created_at,
        "last_active_at": seen.last_active_at,
        "expires_at": seen.expires_at,
    }


def summary(seen: RunSummary) -> dict[str, Any]:
    return {
        "run_id": seen.run_id,
        "session_id": seen.session_id,
        "query": seen.query,
        "status": str(seen.status),
        "agent_flow": str(seen.agent_flow),
        "answer_preview": seen.answer_preview,
        "created_at": seen.created_at,
        "counts": None if str(seen.status) == "RUNNING" else (seen.step_count, seen.tool_call_count),
    }


def trace(seen: RunTrace) -> dict[str, Any]:
    run = seen.run
    assert run is not None and seen.run_id == run.run_id
    rows: list[AgentStep | ToolInvocation] = [*seen.agent_steps, *seen.tool_invocations]
    for row in rows:
        assert (row.run_id, row.session_id) == (run.run_id, run.session_id)
    evaluation = seen.self_evaluation
    return {
        "session": session(seen.session),
        "run": {
            "run_id": run.run_id,
            "session_id": run.session_id,
            "query": run.query,
            "status": str(run.status),
            "agent_flow": str(run.agent_flow),
            "answer_preview": None if seen.answer is None else " ".join(seen.answer.split()),
            "created_at": run.created_at,
            "counts": None if run.finished_at is None else (run.step_count, run.tool_call_count),
        },
        "failed": run.error_message is not None,
        "answer": seen.answer,
        "steps": [(step.sequence, step.output) for step in seen.agent_steps],
        "tools": [(tool.sequence, tool.result, tool.step_sequence) for tool in seen.tool_invocations],
        "feedback": None if seen.feedback is None else (seen.feedback.rating, seen.feedback.comment),
        "evaluated": isinstance(evaluation, dict) and "aiops_rule_evaluation" in evaluation,
    }


def overview(seen: SessionOverview) -> dict[str, Any]:
    return {
        **session(seen.session),
        "run_count": seen.run_count,
        "last_run_id": seen.last_run_id,
        "last_query": seen.last_query,
    }


def case(seen: Case) -> dict[str, Any]:
    return {
        "id": seen.id,
        "diagnosis_id": seen.diagnosis_id,
        "session_id": seen.session_id,
        "query": seen.query,
        "answer": seen.answer,
    }


async def runs(reading: Reading, session_id: str, limit: int) -> list[dict[str, Any]]:
    """All pages of a session's runs, one after the other."""
    pages: list[dict[str, Any]] = []
    while page := await reading.runs(session_id, limit=limit, before=pages[-1]["run_id"] if pages else None):
        pages += [summary(one) for one in page]
    return pages


async def sessions(reading: Reading, limit: int) -> list[dict[str, Any]]:
    """All pages of the sessions."""
    pages: list[dict[str, Any]] = []
    while page := await reading.sessions(limit=limit, before=pages[-1]["session_id"] if pages else None):
        pages += [overview(one) for one in page]
    return pages


async def library(reading: Reading, limit: int) -> list[dict[str, Any]]:
    """All pages of the case library."""
    pages: list[dict[str, Any]] = []
    while page := await reading.cases(limit=limit, before=pages[-1]["id"] if pages else None):
        pages += [case(one) for one in page]
    return pages
