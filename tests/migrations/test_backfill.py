"""What becomes of the old system's rows: one compatibility run for each session, made once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.historical import (
    Row,
    dump,
    execute,
    insert_session,
    insert_step,
    insert_tool,
    make_historical,
    row,
    rows,
    url,
)

from casenotes.adapters import migration
from casenotes.adapters.migration import Placed, Rows, backfill
from casenotes.adapters.migration.expressions import run_id_of


def upgrade(path: Path) -> migration.MigrationReport:
    return asyncio.run(migration.upgrade(url(path)))


def run_of(path: Path, session_id: str) -> Row:
    return row(path, "SELECT * FROM diagnosis_run WHERE session_id = ?", session_id)


@pytest.fixture
def migrated(historical: Path) -> Path:
    upgrade(historical)
    return historical


def test_run_id_follows_from_the_session_id_alone() -> None:
    assert run_id_of("checkout-slow") == "legacy-209d7b241e3a1bf5b0f14f68a9da40c4"
    assert run_id_of("диагноз/100%") == "legacy-ed4ae8fa8ac6315dcebd0050f6b3c9ab"


def test_every_session_gets_one_run_of_its_own(migrated: Path) -> None:
    runs = rows(migrated, "SELECT session_id, run_id FROM diagnosis_run")
    sessions = rows(migrated, "SELECT session_id FROM diagnosis_session")
    assert len(runs) == len(sessions) == 11
    assert {run["session_id"]: run["run_id"] for run in runs} == {
        session["session_id"]: run_id_of(session["session_id"]) for session in sessions
    }


def test_what_the_session_knew_is_carried_over(migrated: Path) -> None:
    run = run_of(migrated, "checkout-slow")
    assert run | {"id": 1} == {
        "id": 1,
        "run_id": "legacy-209d7b241e3a1bf5b0f14f68a9da40c4",
        "session_id": "checkout-slow",
        "query": "Why is checkout slow?",
        "status": "SUCCESS",
        "agent_flow": "STATE_GRAPH",
        "answer": "The pool is exhausted.",
        "error_message": None,
        "self_evaluation": '{"score": 0.75, "checks": ["évidence"]}',
        "feedback": "useful",
        "feedback_comment": "that was it",
        "feedback_at": None,
        "step_count": 5,
        "tool_call_count": 4,
        "created_at": "2025-03-01 10:00:00.000000",
        "updated_at": "2025-03-01 10:00:42.500000",
        "finished_at": "2025-03-01 10:00:42.500000",
        "orchestration_trace": None,
        "degraded": 0,
        "context_degraded": 0,
        "lease_owner": None,
        "lease_expires_at": None,
    }


@pytest.mark.parametrize(
    ("stored", "status", "reason"),
    [
        ("SUCCESS", "SUCCESS", None),
        ("succeeded", "SUCCESS", None),
        (" Completed ", "SUCCESS", None),
        ("Finished", "SUCCESS", None),
        ("RUNNING", "FAILED", "the old system recorded the status RUNNING"),
        ("failed", "FAILED", "the old system recorded the status failed"),
        ("UNSUCCESSFUL", "FAILED", "the old system recorded the status UNSUCCESSFUL"),
        (" ", "FAILED", "the old system recorded no status"),
        (None, "FAILED", "the old system recorded no status"),
    ],
)
def test_a_finished_session_succeeded_and_any_other_failed_for_a_reason(
    new: Path, stored: str | None, status: str, reason: str | None
) -> None:
    make_historical(new, with_rows=False)
    insert_session(new, "s", status=stored)
    upgrade(new)
    run = run_of(new, "s")
    assert (run["status"], run["error_message"]) == (status, reason)


@pytest.mark.parametrize(
    ("session_id", "flow"),
    [
        ("checkout-slow", "STATE_GRAPH"),
        ("failed", "multi-agent"),
        ("bare", "LEGACY"),
        ("Checkout-Slow", "LEGACY"),
    ],
)
def test_the_flow_is_kept_as_stored_or_called_legacy(migrated: Path, session_id: str, flow: str) -> None:
    assert run_of(migrated, session_id)["agent_flow"] == flow


def test_a_session_of_which_nothing_is_known_is_readable_all_the_same(migrated: Path) -> None:
    run = run_of(migrated, "bare")
    assert (run["query"], run["answer"], run["step_count"], run["tool_call_count"]) == ("", None, 0, 0)


@pytest.mark.parametrize(
    ("session_id", "created_at", "updated_at"),
    [
        ("iso-times", "2025-03-05 10:00:00.250000", "2025-03-05 10:00:01.000000"),
        ("epoch-times", "2025-03-05 10:00:00.123000", "2025-03-05 10:00:00.123000"),
        ("no-times", "1970-01-01 00:00:00.000000", "1970-01-01 00:00:00.000000"),
    ],
)
def test_times_of_other_makers_become_times_of_the_ledger(
    migrated: Path, session_id: str, created_at: str, updated_at: str
) -> None:
    run = run_of(migrated, session_id)
    assert (run["created_at"], run["updated_at"], run["finished_at"]) == (created_at, updated_at, updated_at)


def test_an_evaluation_that_is_no_json_becomes_a_json_string(migrated: Path) -> None:
    assert run_of(migrated, "iso-times")["self_evaluation"] == '"looks good {"'
    assert run_of(migrated, "epoch-times")["self_evaluation"] == '"fine"'


def test_steps_are_placed_by_number_then_id(migrated: Path) -> None:
    placed = rows(
        migrated, "SELECT id, run_id FROM agent_step WHERE run_id IS NOT NULL ORDER BY run_id, sequence"
    )
    of_checkout = [step["id"] for step in placed if step["run_id"] == run_id_of("checkout-slow")]
    assert of_checkout == [2, 4, 5, 1, 3]
    sequences = rows(
        migrated, "SELECT sequence FROM agent_step WHERE session_id = 'checkout-slow' ORDER BY 1"
    )
    assert [step["sequence"] for step in sequences] == [1, 2, 3, 4, 5]


def test_tool_calls_are_placed_with_their_size_and_the_step_they_were_made_in(migrated: Path) -> None:
    query = (
        "SELECT id, sequence, step_sequence, result_size, result_truncated, result_is_json "
        "FROM tool_invocation WHERE run_id = ? ORDER BY sequence"
    )
    placed = [tuple(tool.values()) for tool in rows(migrated, query, run_id_of("checkout-slow"))]
    assert placed == [(2, 1, 1, 3, 0, 0), (1, 2, 2, 12, 0, 0), (3, 3, None, 0, 0, 0), (4, 4, None, 0, 0, 0)]


def test_rows_whose_session_is_gone_keep_no_run_and_are_reported(historical: Path) -> None:
    report = upgrade(historical)
    assert report.placed == Placed(sessions=11, steps=6, tools=4)
    assert report.leftovers.steps == Rows(1, ("vanished",))
    assert report.leftovers.tools == Rows(2, ("Vanished", "vanished"))
    assert report.leftovers.sessions == Rows()
    assert row(historical, "SELECT run_id, sequence FROM agent_step WHERE session_id = 'vanished'") == {
        "run_id": None,
        "sequence": None,
    }


def test_reported_session_ids_are_bounded_in_number_and_length(new: Path) -> None:
    make_historical(new, with_rows=False)
    for number in range(30):
        insert_step(new, f"{number:02}" + "x" * 10_000)
    steps = upgrade(new).leftovers.steps
    assert steps.count == 30
    assert [len(session_id) for session_id in steps.session_ids] == [200] * 20


def test_every_session_has_a_conversation_with_one_pair_where_it_has_an_answer(migrated: Path) -> None:
    chats = rows(migrated, "SELECT * FROM chat_session")
    assert len(chats) == 11
    pairs = {chat["session_id"]: chat["message_pair_count"] for chat in chats}
    assert [pairs[name] for name in ("checkout-slow", "unfinished", "bare", " checkout-slow ")] == [
        1,
        0,
        0,
        0,
    ]
    assert next(chat for chat in chats if chat["session_id"] == "checkout-slow") == {
        "session_id": "checkout-slow",
        "status": "ACTIVE",
        "message_pair_count": 1,
        "created_at": "2025-03-01 10:00:00.000000",
        "last_active_at": "2025-03-01 10:00:42.500000",
        "expires_at": None,
    }


def test_old_cases_become_historical_and_may_repeat(migrated: Path) -> None:
    cases = rows(migrated, "SELECT id, diagnosis_id, session_id, source, status FROM case_library")
    assert [tuple(case.values()) for case in cases] == [
        (1, "checkout-slow", "checkout-slow", "HISTORICAL", "ACTIVE"),
        (2, "checkout-slow", "checkout-slow", "HISTORICAL", "ACTIVE"),
        (3, "vanished", "vanished", "HISTORICAL", "ACTIVE"),
    ]


def test_the_old_table_is_left_as_it_was_and_stays_writable(historical: Path) -> None:
    before = rows(historical, "SELECT * FROM diagnosis_session")
    upgrade(historical)
    assert rows(historical, "SELECT * FROM diagnosis_session") == before
    execute(historical, "UPDATE diagnosis_session SET answer = 'late' WHERE session_id = 'unfinished'")
    insert_session(historical, "later")
    assert len(rows(historical, "SELECT * FROM diagnosis_session")) == 12


def test_of_repeated_sessions_the_latest_is_taken_and_the_others_are_reported(new: Path) -> None:
    make_historical(new, unique=False, with_rows=False)
    insert_session(new, "twice", query="latest", created_at="2025-01-02 00:00:00.000000")
    insert_session(
        new, "twice", query="older, though its id is higher", created_at="2025-01-01 00:00:00.000000"
    )
    insert_session(new, "tie", query="first")
    insert_session(new, "tie", query="second")
    insert_step(new, "twice", step_number=1)

    report = upgrade(new)

    assert report.placed == Placed(sessions=2, steps=1)
    assert report.leftovers.duplicates == Rows(2, ("tie", "twice"))
    queries = rows(new, "SELECT query FROM diagnosis_run ORDER BY query")
    assert [run["query"] for run in queries] == ["latest", "second"]


def test_running_again_changes_nothing(migrated: Path) -> None:
    before = dump(migrated)
    report = upgrade(migrated)
    assert (report.applied, report.placed) == ((), Placed())
    assert dump(migrated) == before


def test_sessions_that_the_old_system_writes_later_are_placed_by_the_next_run(migrated: Path) -> None:
    before = rows(migrated, "SELECT * FROM diagnosis_run")
    insert_session(migrated, "later", query="And now?")
    insert_step(migrated, "later", step_number=1)

    assert upgrade(migrated).placed == Placed(sessions=1, steps=1)

    assert rows(migrated, "SELECT * FROM diagnosis_run WHERE session_id <> 'later'") == before
    assert run_of(migrated, "later")["step_count"] == 1


def test_late_rows_of_a_placed_session_go_behind_the_others(migrated: Path) -> None:
    insert_step(migrated, "checkout-slow", step_number=0)
    insert_tool(migrated, "checkout-slow", step_number=0)

    assert upgrade(migrated).placed == Placed(steps=1, tools=1)

    assert row(migrated, "SELECT sequence FROM agent_step WHERE step_number = 0") == {"sequence": 6}
    tool = row(migrated, "SELECT sequence, step_sequence FROM tool_invocation WHERE step_number = 0")
    assert tool == {"sequence": 5, "step_sequence": 6}
    run = run_of(migrated, "checkout-slow")
    assert (run["step_count"], run["tool_call_count"]) == (6, 5)


def test_late_cases_of_the_old_system_become_historical_and_those_of_people_do_not(migrated: Path) -> None:
    for session_id in ("checkout-slow", "nobody's"):
        execute(
            migrated,
            "INSERT INTO case_library (diagnosis_id, created_at, updated_at) VALUES (?, 0, 0)",
            session_id,
        )
    upgrade(migrated)
    cases = rows(migrated, "SELECT source, session_id FROM case_library WHERE id > 3 ORDER BY id")
    assert [tuple(case.values()) for case in cases] == [("HISTORICAL", "checkout-slow"), ("MANUAL", None)]


def test_new_runs_of_a_historical_session_are_not_touched(migrated: Path) -> None:
    moment = "2026-01-01 00:00:00.000000"
    execute(
        migrated,
        "INSERT INTO diagnosis_run (run_id, session_id, query, status, agent_flow, created_at, updated_at, step_count) "
        "VALUES ('run-new', 'checkout-slow', 'And now?', 'RUNNING', 'CHAT', ?, ?, 7)",
        moment,
        moment,
    )
    execute(migrated, "UPDATE chat_session SET message_pair_count = 5, last_active_at = ?", moment)
    insert_step(migrated, "checkout-slow", run_id="run-new", sequence=1)
    new_rows = (
        "SELECT * FROM diagnosis_run WHERE run_id = 'run-new'",
        "SELECT * FROM agent_step WHERE run_id = 'run-new'",
        "SELECT * FROM chat_session WHERE session_id = 'checkout-slow'",
    )
    before = [row(migrated, query) for query in new_rows]
    insert_step(migrated, "checkout-slow", step_number=9)

    assert upgrade(migrated).placed == Placed(steps=1)

    assert [row(migrated, query) for query in new_rows] == before
    assert row(migrated, "SELECT run_id, sequence FROM agent_step WHERE step_number = 9") == {
        "run_id": run_id_of("checkout-slow"),
        "sequence": 6,
    }


def test_a_session_that_the_new_system_knew_first_gets_its_old_run_beside_the_new_one(new: Path) -> None:
    upgrade(new)
    moment = "2026-01-01 00:00:00.000000"
    execute(
        new,
        "INSERT INTO diagnosis_run (run_id, session_id, query, status, agent_flow, created_at, updated_at) "
        "VALUES ('run-new', 's', 'q', 'SUCCESS', 'CHAT', ?, ?)",
        moment,
        moment,
    )
    execute(new, "INSERT INTO chat_session VALUES ('s', 'ACTIVE', 3, ?, ?, NULL)", moment, moment)
    insert_session(new, "s", answer="old")

    assert upgrade(new).placed == Placed(sessions=1)

    assert row(new, "SELECT message_pair_count, last_active_at FROM chat_session") == {
        "message_pair_count": 3,
        "last_active_at": moment,
    }
    assert {run["run_id"] for run in rows(new, "SELECT run_id FROM diagnosis_run")} == {
        "run-new",
        run_id_of("s"),
    }


def test_a_session_whose_run_id_is_taken_stays_unplaced_and_is_reported(new: Path) -> None:
    upgrade(new)
    execute(
        new,
        "INSERT INTO diagnosis_run (run_id, session_id, query, status, agent_flow, created_at, updated_at) "
        "VALUES (?, 'other', 'q', 'SUCCESS', 'CHAT', 0, 0)",
        run_id_of("s"),
    )
    insert_session(new, "s")
    insert_step(new, "s", step_number=1)

    report = upgrade(new)

    assert report.placed == Placed()
    assert (report.leftovers.sessions, report.leftovers.steps) == (Rows(1, ("s",)), Rows(1, ("s",)))
    assert row(new, "SELECT session_id, step_count FROM diagnosis_run") == {
        "session_id": "other",
        "step_count": 0,
    }


def test_small_batches_place_the_same_as_one(
    historical: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = tmp_path / "at-once.db"
    make_historical(at_once)
    upgrade(at_once)
    monkeypatch.setattr(backfill, "BATCH", 2)
    upgrade(historical)
    assert dump(historical) == dump(at_once)
