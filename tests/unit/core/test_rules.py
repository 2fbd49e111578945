"""The rules, each held by a table or a property."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casenotes.core import rules
from casenotes.core.errors import InvalidInput, RunNotFound, SessionNotFound
from casenotes.core.model import ChatSession, DiagnosisRun, HistoricalSession
from casenotes.core.views import SummarySource
from casenotes.core.words import AgentFlow, CaseSource, CaseStatus, RunStatus, SessionStatus

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)


def make_run(
    run_id: str = "run-1",
    session_id: str = "s-1",
    at: datetime = T0,
    id: int = 1,
    status: RunStatus = RunStatus.SUCCESS,
    flow: str = "CHAT",
    answer: str | None = "Pool exhausted.",
    feedback: str | None = None,
    lease: datetime | None = None,
) -> DiagnosisRun:
    return DiagnosisRun(
        run_id,
        session_id,
        "Why?",
        status,
        flow,
        at,
        at,
        answer=answer,
        feedback=feedback,
        lease_expires_at=lease,
        id=id,
    )


OLD = HistoricalSession("s-1", "Why?", "Because.", "SUCCESS", "CHAT", T0, T0)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_latest_run_is_the_one_created_last_and_of_equals_the_one_inserted_last(
    seconds: list[int], random: object
) -> None:
    runs = [make_run(f"run-{i}", at=T0 + timedelta(seconds=s), id=i) for i, s in enumerate(seconds, 1)]
    expected = sorted(runs, key=lambda run: (run.created_at, run.id or 0))[-1]
    shuffled = list(runs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert rules.latest_run(shuffled) is expected


def test_no_run_is_the_latest_of_none() -> None:
    assert rules.latest_run([]) is None


def test_a_run_of_another_session_does_not_exist() -> None:
    with pytest.raises(RunNotFound) as foreign:
        rules.owned(make_run(session_id="other"), "s-1", "run-1")
    with pytest.raises(RunNotFound) as absent:
        rules.owned(None, "s-1", "run-1")
    assert str(foreign.value) == str(absent.value)


def test_feedback_with_a_run_id_is_bound_to_that_run() -> None:
    run = make_run()
    assert rules.bind_feedback("s-1", "run-1", run, None) == rules.BoundToRun(run, fell_back=False)


def test_feedback_without_a_run_id_falls_back_to_the_latest_run() -> None:
    run = make_run()
    assert rules.bind_feedback("s-1", None, run, OLD) == rules.BoundToRun(run, fell_back=True)


def test_feedback_without_any_run_is_bound_to_the_historical_row() -> None:
    assert rules.bind_feedback("s-1", None, None, OLD) == rules.BoundToHistory(OLD)


@pytest.mark.parametrize("candidate", [None, make_run(session_id="other"), make_run(run_id="run-2")])
def test_feedback_for_a_run_that_is_not_the_sessions_falls_back_to_nothing(
    candidate: DiagnosisRun | None,
) -> None:
    bound = rules.bind_feedback("s-1", "run-1", candidate, OLD)
    assert isinstance(bound, rules.Unbound)
    assert isinstance(bound.reason, RunNotFound)


def test_feedback_for_an_unknown_session_is_bound_to_nothing() -> None:
    bound = rules.bind_feedback("s-1", None, None, None)
    assert isinstance(bound, rules.Unbound)
    assert isinstance(bound.reason, SessionNotFound)


@pytest.mark.parametrize("rating", ["USEFUL", "", "meh", "useful "])
def test_an_unknown_rating_is_refused_by_its_wire_name(rating: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        rules.feedback(rating, None, T0)
    assert refused.value.field == "feedback"


def test_a_comment_is_cleaned_of_secrets() -> None:
    assert (
        rules.feedback("useful", "it was password=hunter2", T0).comment
        == "it was password=[redacted:password]"
    )


def test_useful_feedback_makes_a_case_of_the_run() -> None:
    case = rules.case_for(make_run(feedback="useful"), T0)
    assert case is not None
    assert (case.diagnosis_id, case.session_id, case.query, case.answer) == (
        "run-1",
        "s-1",
        "Why?",
        "Pool exhausted.",
    )
    assert (case.status, case.source) == (CaseStatus.ACTIVE, CaseSource.AUTO)


@pytest.mark.parametrize(
    "run",
    [make_run(), make_run(feedback="not_useful"), make_run(feedback="useful", answer=None)],
    ids=["unrated", "not useful", "no answer"],
)
def test_no_case_is_made_of_a_run_without_a_useful_answer(run: DiagnosisRun) -> None:
    assert rules.case_for(run, T0) is None


@pytest.mark.parametrize(
    ("status", "flow", "counts"),
    [
        (RunStatus.SUCCESS, "CHAT", True),
        (RunStatus.SUCCESS, "STATE_GRAPH", True),
        (RunStatus.SUCCESS, "AI_OPS", False),
        (RunStatus.FAILED, "CHAT", False),
    ],
)
def test_a_turn_counts_when_it_was_answered_and_is_not_aiops(
    status: RunStatus, flow: str, counts: bool
) -> None:
    assert rules.counts_as_turn(make_run(status=status, flow=flow)) is counts


def test_a_session_expires_at_the_moment_its_time_has_passed() -> None:
    assert rules.session_status(None, T0) is SessionStatus.ACTIVE
    assert rules.session_status(T0 + timedelta(microseconds=1), T0) is SessionStatus.ACTIVE
    assert rules.session_status(T0, T0) is SessionStatus.EXPIRED


def test_a_session_summary_comes_from_the_best_row_there_is() -> None:
    chat = ChatSession("s-1", T0, T0, message_pair_count=4)
    run = make_run()

    def source(
        chat: ChatSession | None, run: DiagnosisRun | None, old: HistoricalSession | None
    ) -> SummarySource:
        return rules.session_summary("s-1", chat, run, old, T0).source

    assert source(chat, run, OLD) is SummarySource.CHAT_SESSION
    assert source(None, run, OLD) is SummarySource.DIAGNOSIS_RUN
    assert source(None, None, OLD) is SummarySource.DIAGNOSIS_SESSION
    with pytest.raises(SessionNotFound):
        source(None, None, None)


@pytest.mark.parametrize(
    ("requested", "question", "flow"),
    [
        ("chat", "Why is checkout slow?", AgentFlow.CHAT),
        ("graph", "hello", AgentFlow.STATE_GRAPH),
        ("auto", "Why is checkout slow?", AgentFlow.STATE_GRAPH),
        ("auto", "Which pods run in shop?", AgentFlow.CHAT),
        ("auto", "x" * 500, AgentFlow.STATE_GRAPH),
    ],
)
def test_a_question_is_routed_by_what_was_requested_and_else_by_what_it_asks(
    requested: str, question: str, flow: AgentFlow
) -> None:
    assert rules.route(requested, question) is flow


def test_an_unknown_flow_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^flow: "):
        rules.route("GRAPH", "hello")


@pytest.mark.parametrize("good", ["s-1", "a", "日本", "a.b_c:d@e+f=g~h-i", "é", "1", "x" * 128, "नमस्ते"])
def test_a_session_may_be_created_with_an_id_of_letters_marks_digits_and_some_signs(good: str) -> None:
    assert rules.is_new_session_id(good)


@pytest.mark.parametrize(
    "bad",
    ["", " ", "a b", "-", "...", "a/b", "a%b", "x" * 129, "a\x00", "a\n", "a\u202eb", "🙂", "\ud800", " a"],
)
def test_no_session_is_created_with_another_id(bad: str) -> None:
    assert not rules.is_new_session_id(bad)


@pytest.mark.parametrize("bad", ["", "  \n", "x" * 32_001, 5, None, ["Why?"]])
def test_a_question_that_is_none_is_refused_by_its_wire_name(bad: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        rules.check_question(bad)
    assert refused.value.field == "question"


def test_a_question_is_kept_as_it_was_asked() -> None:
    assert rules.check_question("  Why? ") == "  Why? "
    assert rules.check_question("x" * 32_000) == "x" * 32_000


def test_alerts_are_a_list_of_objects_or_absent() -> None:
    assert rules.check_alerts(None) is None
    assert rules.check_alerts([]) == ()
    assert rules.check_alerts([{"labels": {}}]) == ({"labels": {}},)
    refused: tuple[object, ...] = ("x", {}, [1], [[]])
    for bad in refused:
        with pytest.raises(InvalidInput, match=r"^alerts: "):
            rules.check_alerts(bad)


def test_a_lease_expires_only_after_its_time_and_only_while_running() -> None:
    running = make_run(status=RunStatus.RUNNING, lease=T0)
    assert not rules.lease_expired(running, T0)
    assert rules.lease_expired(running, T0 + timedelta(microseconds=1))
    assert rules.lease_expired(make_run(status=RunStatus.RUNNING), T0)
    assert not rules.lease_expired(make_run(lease=T0), T0 + timedelta(days=1))


@given(st.text())
def test_a_preview_is_one_line_of_at_most_200_characters(answer: str) -> None:
    preview = rules.answer_preview(answer)
    assert preview is not None
    assert len(preview) <= 200
    assert "\n" not in preview
    assert preview == " ".join(preview.split())


def test_a_preview_of_no_answer_is_none() -> None:
    assert rules.answer_preview(None) is None
