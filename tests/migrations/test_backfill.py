"""What becomes of the old system's rows: one compatibility run for each session, made once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from support.historical import MOMENT, OldDatabase, PostgresDatabase, Row, SqliteDatabase
from support.postgres import PostgresDatabases

from casenotes.adapters import migration
from casenotes.adapters.migration import Placed, Rows, backfill
from casenotes.core.rules import compatibility_run_id

STATUSES = (
    ("SUCCESS", "SUCCESS", None),
    ("succeeded", "SUCCESS", None),
    (" Completed ", "SUCCESS", None),
    ("Finished", "SUCCESS", None),
    ("RUNNING", "FAILED", "the old system recorded the status RUNNING"),
    ("failed", "FAILED", "the old system recorded the status failed"),
    ("UNSUCCESSFUL", "FAILED", "the old system recorded the status UNSUCCESSFUL"),
    (" ", "FAILED", "the old system recorded no status"),
    (None, "FAILED", "the old system recorded no status"),
)
"""A status of the old system; the run's status and reason."""


def upgrade(database: OldDatabase) -> migration.MigrationReport:
    return asyncio.run(migration.upgrade(database.url))


def run_of(database: OldDatabase, session_id: str) -> Row:
    return database.row("SELECT * FROM diagnosis_run WHERE session_id = ?", session_id)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def seen(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres: PostgresDatabases
) -> Iterator[OldDatabase]:
    """A migrated database that is only looked at."""
    with ExitStack() as stack:
        database: OldDatabase = (
            SqliteDatabase(tmp_path_factory.mktemp("seen") / "seen.db")
            if request.param == "sqlite"
            else PostgresDatabase(stack.enter_context(postgres.empty()))
        )
        database.make_historical()
        for number, (status, _, _) in enumerate(STATUSES):
            database.insert_session(f"status-{number}", status=status)
        upgrade(database)
        yield database


def test_run_id_follows_from_the_session_id_alone() -> None:
    assert compatibility_run_id("checkout-slow") == "run-legacy-209d7b241e3a1bf5b0f14f68a9da40c4"
    assert compatibility_run_id("диагноз/100%") == "run-legacy-ed4ae8fa8ac6315dcebd0050f6b3c9ab"


def test_every_session_gets_one_run_of_its_own(seen: OldDatabase) -> None:
    runs = seen.rows("SELECT session_id, run_id FROM diagnosis_run")
    sessions = seen.rows("SELECT session_id FROM diagnosis_session")
    assert len(runs) == len(sessions) == 11 + len(STATUSES)
    assert {run["session_id"]: run["run_id"] for run in runs} == {
        session["session_id"]: compatibility_run_id(session["session_id"]) for session in sessions
    }


def test_what_the_session_knew_is_carried_over(seen: OldDatabase) -> None:
    run = run_of(seen, "checkout-slow")
    assert run | {"id": 1} == {
        "id": 1,
        "run_id": "run-legacy-209d7b241e3a1bf5b0f14f68a9da40c4",
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
        "digest": None,
        "previous_digest": None,
        "chain_position": None,
        "entry_digests": None,
    }


def test_a_finished_session_succeeded_and_any_other_failed_for_a_reason(seen: OldDatabase) -> None:
    for number, (_, status, reason) in enumerate(STATUSES):
        run = run_of(seen, f"status-{number}")
        assert (run["status"], run["error_message"]) == (status, reason)


def test_the_flow_is_kept_as_stored_or_called_legacy(seen: OldDatabase) -> None:
    flows = {
        "checkout-slow": "STATE_GRAPH",
        "failed": "multi-agent",
        "bare": "LEGACY",
        "Checkout-Slow": "LEGACY",
    }
    assert {session_id: run_of(seen, session_id)["agent_flow"] for session_id in flows} == flows


def test_a_session_of_which_nothing_is_known_is_readable_all_the_same(seen: OldDatabase) -> None:
    run = run_of(seen, "bare")
    assert (run["query"], run["answer"], run["step_count"], run["tool_call_count"]) == ("", None, 0, 0)


def test_times_of_other_makers_become_times_of_the_ledger(seen: OldDatabase) -> None:
    for session_id, created_at, updated_at in (
        ("iso-times", "2025-03-05 10:00:00.250000", "2025-03-05 10:00:01.000000"),
        ("epoch-times", "2025-03-05 10:00:00.123000", "2025-03-05 10:00:00.123000"),
        ("no-times", "1970-01-01 00:00:00.000000", "1970-01-01 00:00:00.000000"),
    ):
        run = run_of(seen, session_id)
        assert (run["created_at"], run["updated_at"], run["finished_at"]) == (
            created_at,
            updated_at,
            updated_at,
        )


def test_an_evaluation_that_is_no_json_becomes_a_json_string(seen: OldDatabase) -> None:
    assert run_of(seen, "iso-times")["self_evaluation"] == '"looks good {"'
    assert run_of(seen, "epoch-times")["self_evaluation"] == '"fine"'


def test_steps_are_placed_by_number_then_id(seen: OldDatabase) -> None:
    placed = seen.rows("SELECT id, run_id FROM agent_step WHERE run_id IS NOT NULL ORDER BY run_id, sequence")
    of_checkout = [step["id"] for step in placed if step["run_id"] == compatibility_run_id("checkout-slow")]
    assert of_checkout == [2, 4, 5, 1, 3]
    sequences = seen.rows("SELECT sequence FROM agent_step WHERE session_id = 'checkout-slow' ORDER BY 1")
    assert [step["sequence"] for step in sequences] == [1, 2, 3, 4, 5]


def test_tool_calls_are_placed_with_their_size_and_the_step_they_were_made_in(seen: OldDatabase) -> None:
    query = (
        "SELECT id, sequence, step_sequence, result_size, result_truncated, result_is_json "
        "FROM tool_invocation WHERE run_id = ? ORDER BY sequence"
    )
    placed = [tuple(tool.values()) for tool in seen.rows(query, compatibility_run_id("checkout-slow"))]
    assert placed == [(2, 1, 1, 3, 0, 0), (1, 2, 2, 12, 0, 0), (3, 3, None, 0, 0, 0), (4, 4, None, 0, 0, 0)]


def test_rows_whose_session_is_gone_keep_no_run_and_are_reported(historical: OldDatabase) -> None:
    report = upgrade(historical)
    assert report.placed == Placed(sessions=11, steps=6, tools=4)
    assert report.leftovers.steps == Rows(1, ("vanished",))
    assert report.leftovers.tools.count == 2
    assert set(report.leftovers.tools.session_ids) == {"Vanished", "vanished"}
    assert report.leftovers.sessions == Rows()
    assert historical.row("SELECT run_id, sequence FROM agent_step WHERE session_id = 'vanished'") == {
        "run_id": None,
        "sequence": None,
    }


def test_reported_session_ids_are_bounded_in_number_and_length(new: OldDatabase) -> None:
    new.make_historical(with_rows=False)
    for number in range(30):
        new.insert_step(f"{number:02}" + "x" * 10_000)
    steps = upgrade(new).leftovers.steps
    assert steps.count == 30
    assert [len(session_id) for session_id in steps.session_ids] == [200] * 20


def test_every_session_has_a_conversation_with_one_pair_where_it_has_an_answer(seen: OldDatabase) -> None:
    chats = seen.rows("SELECT * FROM chat_session")
    assert len(chats) == 11 + len(STATUSES)
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
        "ended_run_count": 0,
        "last_run_digest": None,
    }


def test_old_cases_become_historical_and_may_repeat(seen: OldDatabase) -> None:
    cases = seen.rows("SELECT id, diagnosis_id, session_id, source, status FROM case_library")
    assert [tuple(case.values()) for case in cases] == [
        (1, "checkout-slow", "checkout-slow", "HISTORICAL", "ACTIVE"),
        (2, "checkout-slow", "checkout-slow", "HISTORICAL", "ACTIVE"),
        (3, "vanished", "vanished", "HISTORICAL", "ACTIVE"),
    ]


def test_the_old_table_is_left_as_it_was_and_stays_writable(historical: OldDatabase) -> None:
    before = historical.rows("SELECT * FROM diagnosis_session")
    upgrade(historical)
    assert historical.rows("SELECT * FROM diagnosis_session") == before
    historical.execute("UPDATE diagnosis_session SET answer = 'late' WHERE session_id = 'unfinished'")
    historical.insert_session("later")
    assert len(historical.rows("SELECT * FROM diagnosis_session")) == 12


def test_of_repeated_sessions_the_latest_is_taken_and_the_others_are_reported(new: OldDatabase) -> None:
    new.make_historical(unique=False, with_rows=False)
    new.insert_session("twice", query="latest", created_at="2025-01-02 00:00:00.000000")
    new.insert_session(
        "twice", query="older, though its id is higher", created_at="2025-01-01 00:00:00.000000"
    )
    new.insert_session("tie", query="first")
    new.insert_session("tie", query="second")
    new.insert_step("twice", step_number=1)

    report = upgrade(new)

    assert report.placed == Placed(sessions=2, steps=1)
    assert report.leftovers.duplicates == Rows(2, ("tie", "twice"))
    queries = new.rows("SELECT query FROM diagnosis_run ORDER BY query")
    assert [run["query"] for run in queries] == ["latest", "second"]


def test_small_batches_place_the_same_as_one(
    historical: OldDatabase, another: Callable[[], OldDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = another()
    at_once.make_historical()
    upgrade(at_once)
    monkeypatch.setattr(backfill, "BATCH", 2)
    upgrade(historical)
    for database in (historical, at_once):
        database.execute("UPDATE ledger_epoch SET began_at = ?", MOMENT)
    assert historical.dump() == at_once.dump()


def test_both_databases_place_the_same(
    historical_file: SqliteDatabase, historical_on_server: PostgresDatabase
) -> None:
    for query in (
        "SELECT run_id, session_id, query, status, agent_flow, answer, error_message, feedback, step_count, "
        "tool_call_count, created_at, updated_at, finished_at FROM diagnosis_run",
        "SELECT session_id, status, message_pair_count, created_at, last_active_at FROM chat_session",
        "SELECT id, session_id, run_id, sequence FROM agent_step",
        "SELECT id, session_id, run_id, sequence, step_sequence, result_size FROM tool_invocation",
        "SELECT id, diagnosis_id, session_id, source FROM case_library",
    ):
        found = []
        for database in (historical_file, historical_on_server):
            upgrade(database)
            found.append(sorted(map(str, database.rows(query))))
        assert found[0] == found[1]
