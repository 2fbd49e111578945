"""What the old system writes after the migration, and what the new one wrote before: placed without harm."""

from __future__ import annotations

import asyncio

import pytest
from support.historical import MOMENT, OldDatabase, Row

from casenotes.adapters import migration
from casenotes.adapters.migration import Placed, Rows
from casenotes.core.rules import compatibility_run_id


def upgrade(database: OldDatabase) -> migration.MigrationReport:
    return asyncio.run(migration.upgrade(database.url))


def run_of(database: OldDatabase, session_id: str) -> Row:
    return database.row("SELECT * FROM diagnosis_run WHERE session_id = ?", session_id)


@pytest.fixture
def migrated(historical: OldDatabase) -> OldDatabase:
    upgrade(historical)
    return historical


def test_running_again_changes_nothing(migrated: OldDatabase) -> None:
    before = migrated.dump()
    report = upgrade(migrated)
    assert (report.applied, report.placed) == ((), Placed())
    assert migrated.dump() == before


def test_sessions_that_the_old_system_writes_later_are_placed_by_the_next_run(migrated: OldDatabase) -> None:
    before = migrated.rows("SELECT * FROM diagnosis_run")
    migrated.insert_session("later", query="And now?")
    migrated.insert_step("later", step_number=1)

    assert upgrade(migrated).placed == Placed(sessions=1, steps=1)

    assert migrated.rows("SELECT * FROM diagnosis_run WHERE session_id <> 'later'") == before
    assert run_of(migrated, "later")["step_count"] == 1


def test_late_rows_of_a_placed_session_go_behind_the_others(migrated: OldDatabase) -> None:
    migrated.insert_step("checkout-slow", step_number=0)
    migrated.insert_tool("checkout-slow", step_number=0)

    assert upgrade(migrated).placed == Placed(steps=1, tools=1)

    assert migrated.row("SELECT sequence FROM agent_step WHERE step_number = 0") == {"sequence": 6}
    tool = migrated.row("SELECT sequence, step_sequence FROM tool_invocation WHERE step_number = 0")
    assert tool == {"sequence": 5, "step_sequence": 6}
    run = run_of(migrated, "checkout-slow")
    assert (run["step_count"], run["tool_call_count"]) == (6, 5)


def test_late_cases_of_the_old_system_become_historical_and_those_of_people_do_not(
    migrated: OldDatabase,
) -> None:
    for session_id in ("checkout-slow", "nobody's"):
        migrated.insert("case_library", diagnosis_id=session_id, created_at=MOMENT, updated_at=MOMENT)
    upgrade(migrated)
    cases = migrated.rows("SELECT source, session_id FROM case_library WHERE id > 3 ORDER BY id")
    assert [tuple(case.values()) for case in cases] == [("HISTORICAL", "checkout-slow"), ("MANUAL", None)]


def test_late_feedback_of_the_old_system_is_carried_over_unless_the_run_was_rated_itself(
    migrated: OldDatabase,
) -> None:
    migrated.execute(
        "UPDATE diagnosis_run SET feedback = 'useful', feedback_at = ? WHERE session_id = 'failed'", MOMENT
    )
    migrated.execute(
        "UPDATE diagnosis_session SET feedback = 'not_useful', feedback_comment = 'late' "
        "WHERE session_id IN ('bare', 'failed')"
    )
    others = migrated.rows("SELECT * FROM diagnosis_run WHERE session_id <> 'bare' ORDER BY id")
    upgrade(migrated)
    run = run_of(migrated, "bare")
    assert (run["feedback"], run["feedback_comment"]) == ("not_useful", "late")
    assert migrated.rows("SELECT * FROM diagnosis_run WHERE session_id <> 'bare' ORDER BY id") == others


def test_new_runs_of_a_historical_session_are_not_touched(migrated: OldDatabase) -> None:
    migrated.insert_run("run-new", "checkout-slow", status="RUNNING", step_count=7)
    migrated.execute("UPDATE chat_session SET message_pair_count = 5, last_active_at = ?", MOMENT)
    migrated.insert_step("checkout-slow", run_id="run-new", sequence=1)
    new_rows = (
        "SELECT * FROM diagnosis_run WHERE run_id = 'run-new'",
        "SELECT * FROM agent_step WHERE run_id = 'run-new'",
        "SELECT * FROM chat_session WHERE session_id = 'checkout-slow'",
    )
    before = [migrated.row(query) for query in new_rows]
    migrated.insert_step("checkout-slow", step_number=9)

    assert upgrade(migrated).placed == Placed(steps=1)

    assert [migrated.row(query) for query in new_rows] == before
    assert migrated.row("SELECT run_id, sequence FROM agent_step WHERE step_number = 9") == {
        "run_id": compatibility_run_id("checkout-slow"),
        "sequence": 6,
    }


def test_a_session_that_the_new_system_knew_first_gets_its_old_run_beside_the_new_one(
    new: OldDatabase,
) -> None:
    upgrade(new)
    new.insert_run("run-new", "s")
    chat = {"session_id": "s", "status": "ACTIVE", "message_pair_count": 3}
    new.insert("chat_session", **chat, created_at=MOMENT, last_active_at=MOMENT)
    new.insert_session("s", answer="old")

    assert upgrade(new).placed == Placed(sessions=1)

    assert new.row("SELECT message_pair_count, last_active_at FROM chat_session") == {
        "message_pair_count": 3,
        "last_active_at": MOMENT,
    }
    assert {run["run_id"] for run in new.rows("SELECT run_id FROM diagnosis_run")} == {
        "run-new",
        compatibility_run_id("s"),
    }


def test_a_session_whose_run_id_is_taken_stays_unplaced_and_is_reported(new: OldDatabase) -> None:
    upgrade(new)
    new.insert_run(compatibility_run_id("s"), "other")
    new.insert_session("s")
    new.insert_step("s", step_number=1)

    report = upgrade(new)

    assert report.placed == Placed()
    assert (report.leftovers.sessions, report.leftovers.steps) == (Rows(1, ("s",)), Rows(1, ("s",)))
    assert new.row("SELECT session_id, step_count FROM diagnosis_run") == {
        "session_id": "other",
        "step_count": 0,
    }
