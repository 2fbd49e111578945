"""Runs, steps and tool calls: stamped by construction, and ended once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs
import pytest

from casenotes.core.errors import InvalidTransition
from casenotes.core.model import ChatSession, DiagnosisRun, Feedback, Lease, RunMetrics
from casenotes.core.words import AgentFlow, RunStatus

T0 = datetime(2026, 3, 1, tzinfo=UTC)
T1 = T0 + timedelta(seconds=2)
METRICS = RunMetrics(1, 2)


def started() -> DiagnosisRun:
    return DiagnosisRun.start("run-1", "s-1", "Why? secret=x", AgentFlow.CHAT, T0, Lease("me", T1))


def test_a_step_and_a_tool_call_carry_the_ids_of_their_run() -> None:
    run = started()
    step, tool = run.step(1, "planner", T0), run.tool_call(1, "logs.search", T0)
    assert (step.run_id, step.session_id) == (tool.run_id, tool.session_id) == ("run-1", "s-1")


def test_all_text_of_a_run_is_clean() -> None:
    run = started()
    dirty = "a\x00 password=hunter2 \ud800"
    step = run.step(
        1, dirty, T0, step_type=dirty, model=dirty, input=dirty, output=dirty, error_message=dirty
    )
    tool = run.tool_call(1, dirty, T0, arguments={"q": dirty}, result=dirty, error_message=dirty)
    ended = run.succeed(dirty, T1, METRICS, self_evaluation={"x": dirty}, orchestration_trace={"y": dirty})
    failed = run.fail(dirty, T1, METRICS)
    assert run.query == "Why? secret=[redacted:password]"
    for record in (step, tool, ended, failed):
        text = repr(attrs.asdict(record))
        assert "hunter2" not in text
        assert "\\x00" not in text
        assert "\\ud800" not in text


def test_a_run_ends_once() -> None:
    ended = started().succeed("Pool exhausted.", T1, METRICS)
    assert (ended.status, ended.answer, ended.finished_at) == (RunStatus.SUCCESS, "Pool exhausted.", T1)
    assert (ended.step_count, ended.tool_call_count) == (1, 2)
    assert (ended.lease_owner, ended.lease_expires_at) == (None, None)
    assert ended.duration == timedelta(seconds=2)
    for again in (ended.succeed, ended.fail):
        with pytest.raises(InvalidTransition):
            again("x", T1, METRICS)


def test_a_failed_run_has_its_reason_and_no_answer() -> None:
    failed = started().fail("it took too long", T1, METRICS)
    assert (failed.status, failed.answer, failed.error_message) == (
        RunStatus.FAILED,
        None,
        "it took too long",
    )


def test_a_run_never_ends_before_it_began() -> None:
    assert started().fail("clock stepped back", T0 - timedelta(hours=1), METRICS).finished_at == T0


def test_feedback_replaces_feedback_and_nothing_else() -> None:
    ended = started().succeed("Pool exhausted.", T1, METRICS)
    rated = ended.rated(Feedback("useful", None, T1)).rated(Feedback("not_useful", "no", T1))
    assert (rated.feedback, rated.feedback_comment) == ("not_useful", "no")
    assert attrs.evolve(rated, feedback=None, feedback_comment=None, feedback_at=None) == ended


def test_a_chat_session_has_no_field_that_could_hold_a_message() -> None:
    assert {a.name for a in attrs.fields(ChatSession)} == {
        "session_id", "created_at", "last_active_at", "status", "message_pair_count", "expires_at",
    }  # fmt: skip
