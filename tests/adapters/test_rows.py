from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from attrs import evolve

from casenotes.adapters.rows import ending_row, from_row, historical_trace, to_row
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.model import AgentStep, Case, DiagnosisRun, HistoricalSession, Lease, ToolInvocation
from casenotes.core.seal import ChainHead, seal
from casenotes.core.text import Json
from casenotes.core.words import AgentFlow, RunStatus, StepStatus

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
RUN = DiagnosisRun.start("r", "s", "why", AgentFlow.CHAT, AT, Lease("me", AT))
OLD_STEP = {"id": 7, "session_id": "s", "created_at": AT}


def old_step(**columns: object) -> AgentStep:
    return from_row(AgentStep, OLD_STEP | columns)


def test_row_comes_back_as_the_model_it_was_made_of() -> None:
    assert from_row(DiagnosisRun, {**to_row(RUN), "id": 3}) == evolve(RUN, id=3)


def test_row_has_no_id_for_the_store_assigns_it() -> None:
    assert "id" not in to_row(evolve(RUN, id=3))


def test_row_holds_plain_words_and_times_in_utc() -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    row = to_row(evolve(RUN, created_at=elsewhere))
    assert type(row["agent_flow"]) is type(row["status"]) is str
    assert row["created_at"] == AT
    assert row["created_at"].tzinfo is UTC


def test_naive_time_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        to_row(evolve(RUN, created_at=AT.replace(tzinfo=None)))


def test_columns_without_a_field_are_ignored() -> None:
    assert from_row(DiagnosisRun, {**to_row(RUN), "column_of_tomorrow": 1}) == RUN


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("query", ["why"]),
        ("query", None),
        ("status", "DONE"),
        ("step_count", "2"),
        ("step_count", True),
        ("degraded", 1),
        ("created_at", "2026-01-02"),
    ],
)
def test_value_of_another_type_is_named_and_never_coerced(column: str, value: object) -> None:
    with pytest.raises(LedgerUnavailable, match=f"DiagnosisRun row 7 cannot be read: {column}$"):
        from_row(DiagnosisRun, {**to_row(RUN), "id": 7, column: value})


def test_model_with_a_value_of_another_type_is_not_written() -> None:
    with pytest.raises(ValueError, match="not str"):
        to_row(evolve(RUN, query=["why"]))  # type: ignore[arg-type]


@pytest.mark.parametrize("result", [None, "", "[1]", "null", [1], {"a": [None, 1.5]}, 0, False, 1.0])
def test_result_is_stored_as_text_and_read_as_what_it_was(result: Json) -> None:
    tool = evolve(RUN.tool_call(1, "logs", AT), result=result)
    row = to_row(tool)
    assert row["result"] is None or isinstance(row["result"], str)
    read = from_row(ToolInvocation, row).result
    assert read == result
    assert type(read) is type(result)


def test_rows_and_models_share_nothing_that_can_change() -> None:
    given: dict[str, Json] = {"labels": ["a"]}
    tool = evolve(RUN.tool_call(1, "logs", AT), arguments=given)
    row = to_row(tool)
    read = from_row(ToolInvocation, row)
    given["labels"] = ["b"]
    assert row["arguments"] == read.arguments == {"labels": ["a"]}
    row["arguments"]["labels"].append("c")
    assert read.arguments == {"labels": ["a"]}


@pytest.mark.parametrize("is_fresh", [False, True])
def test_only_with_a_fresh_row_may_a_model_share_what_can_change(is_fresh: bool) -> None:
    tool = evolve(RUN.tool_call(1, "logs", AT), arguments={"labels": ["a"]})
    for round_ in range(3):  # the first may be read slowly, and tells how the next may be
        row = to_row(tool) | {"id": 7}
        read = from_row(ToolInvocation, row, is_fresh=is_fresh)
        assert read == evolve(tool, id=7)
        assert (read.arguments is row["arguments"]) == is_fresh or round_ == 0


def test_step_number_is_written_for_those_who_still_read_it() -> None:
    assert to_row(RUN.step(4, "planner", AT))["step_number"] == 4
    assert to_row(RUN.tool_call(9, "logs", AT, step_sequence=4))["step_number"] == 4
    assert to_row(RUN.tool_call(9, "logs", AT))["step_number"] is None


def test_columns_that_an_old_step_leaves_empty_are_filled_in() -> None:
    step = old_step(step_number=3, agent_name=None, step_type=None, status=None, sequence=None, run_id=None)
    assert (step.run_id, step.sequence, step.agent_name, step.step_type) == ("", 3, "", "")
    assert step.status is StepStatus.SUCCESS


def test_columns_that_an_old_tool_call_leaves_empty_are_filled_in() -> None:
    row = {**OLD_STEP, "arguments": None, "result": "[1]", "result_is_json": False, "status": None}
    tool = from_row(ToolInvocation, row)
    assert (tool.tool_name, tool.arguments, tool.result, tool.sequence) == ("", None, "[1]", 0)


@pytest.mark.parametrize("word", ["SUCCESS", "succeeded", "Completed", " FINISHED ", "ok", "done"])
def test_old_words_for_success_are_success(word: str) -> None:
    assert old_step(status=word).status is StepStatus.SUCCESS


@pytest.mark.parametrize("word", ["FAILED", "error", "RUNNING", "TIMEOUT", ""])
def test_every_other_old_word_is_failed(word: str) -> None:
    assert old_step(status=word).status is StepStatus.FAILED


def test_old_step_without_a_status_but_with_an_error_is_failed() -> None:
    assert old_step(status=None, error_message="boom").status is StepStatus.FAILED


def test_old_row_without_a_time_is_still_read() -> None:
    assert old_step(created_at=None).created_at == datetime(1970, 1, 1, tzinfo=UTC)
    case = {"id": 1, "diagnosis_id": "s", "query": None, "answer": None, "created_at": None, "updated_at": AT}
    read = from_row(Case, case | {"status": "ACTIVE", "source": "HISTORICAL", "session_id": None})
    assert (read.query, read.answer, read.created_at) == ("", "", AT)


def test_historical_rows_are_numbered_by_step_number_then_id() -> None:
    session = {name: None for name in to_row(HistoricalSession("s", None, None, None, None, AT, AT))}
    steps = [
        {**OLD_STEP, "id": number, "step_number": step}
        for number, step in ((1, None), (2, 5), (3, 2), (4, 5))
    ]
    tools = [
        {
            **OLD_STEP,
            "id": number,
            "step_number": step,
            "arguments": None,
            "result": None,
            "result_is_json": False,
        }
        for number, step in ((1, 5), (2, 2), (3, None), (4, 99))
    ]
    trace = historical_trace({**session, "session_id": "s", "created_at": AT}, steps, tools)
    assert [(step.id, step.sequence) for step in trace.agent_steps] == [(3, 1), (2, 2), (4, 3), (1, 4)]
    placed = [(tool.id, tool.sequence, tool.step_sequence) for tool in trace.tool_invocations]
    assert placed == [(2, 1, 1), (1, 2, 2), (4, 3, None), (3, 4, None)]


def test_run_that_has_not_ended_cannot_be_stored_as_ended() -> None:
    with pytest.raises(ValueError, match="RUNNING"):
        ending_row(RUN, seal(RUN, [], [], ChainHead()))
    ended = evolve(RUN, status=RunStatus.FAILED)
    assert ending_row(ended, seal(ended, [], [], ChainHead()))["lease_owner"] is None
