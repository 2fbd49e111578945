"""Postgres tables of the old system that another tool made, a little different: checked, made to fit, worked on."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from support.historical import TABLES, OldDatabase, PostgresDatabase

import casenotes
from casenotes.adapters import migration
from casenotes.adapters.migration import Placed
from casenotes.core.errors import SchemaOutOfDate
from casenotes.core.rules import compatibility_run_id


@pytest.fixture
def flyway(new_on_server: PostgresDatabase) -> PostgresDatabase:
    """What an installation made with Flyway, on a server in another time zone, with keys between its tables."""
    new_on_server.make_historical(schema="historical_flyway.sql")
    new_on_server.script(
        """
        ALTER TABLE agent_step ADD CONSTRAINT of_session FOREIGN KEY (session_id)
            REFERENCES diagnosis_session (session_id) ON DELETE CASCADE NOT VALID;
        DO $$ BEGIN
            EXECUTE format('ALTER DATABASE %I SET timezone = ''Asia/Tokyo''', current_database());
        END $$;
        """
    )
    return new_on_server


def upgrade(database: OldDatabase) -> migration.MigrationReport:
    return asyncio.run(migration.upgrade(database.url))


def test_tables_that_are_a_little_different_are_adopted_and_all_placed(flyway: PostgresDatabase) -> None:
    report = upgrade(flyway)
    assert (report.adopted, report.placed) == (True, Placed(sessions=11, steps=6, tools=4))
    run = flyway.row("SELECT * FROM diagnosis_run WHERE session_id = 'checkout-slow'")
    assert (run["run_id"], run["step_count"]) == (compatibility_run_id("checkout-slow"), 5)
    assert (run["created_at"], run["updated_at"]) == (
        "2025-03-01 10:00:00.000000",
        "2025-03-01 10:00:42.500000",
    )
    step = flyway.row("SELECT created_at, input_tokens FROM agent_step WHERE id = 1")
    assert step == {"created_at": "2025-03-01 10:00:03.000000", "input_tokens": 3000000000}


def test_the_history_of_the_other_tool_and_columns_of_one_s_own_are_left_alone(
    flyway: PostgresDatabase,
) -> None:
    before = flyway.rows("SELECT * FROM flyway_schema_history")
    upgrade(flyway)
    assert flyway.rows("SELECT * FROM flyway_schema_history") == before
    assert flyway.row("SELECT DISTINCT region FROM diagnosis_session") == {"region": "eu"}


def test_json_kept_as_text_is_json_after_and_what_is_none_becomes_a_json_string(
    flyway: PostgresDatabase,
) -> None:
    flyway.insert_session("odd", self_evaluation="looks good {")
    flyway.insert_session("nul", self_evaluation='"\\u0000"')
    flyway.insert_session("deep", self_evaluation="[" * 100_000)
    upgrade(flyway)
    found = flyway.rows(
        "SELECT session_id, jsonb_typeof(self_evaluation) AS kind FROM diagnosis_run "
        "WHERE self_evaluation IS NOT NULL AND session_id IN ('checkout-slow', 'odd', 'nul', 'deep')"
    )
    assert {each["session_id"]: each["kind"] for each in found} == {
        "checkout-slow": "object",
        "odd": "string",
        "nul": "string",
        "deep": "string",
    }


def test_the_ledger_works_on_adopted_tables(flyway: PostgresDatabase) -> None:
    upgrade(flyway)
    long = "x" * 5000

    async def work() -> None:
        async with casenotes.open(flyway.url) as notes:
            for _ in range(2):  # a second run of a session counts its steps from 1 again
                async with notes.run(long, session="a-new-session") as run:
                    async with run.step("planner" * 10, model="m" * 50) as step:
                        step.output = long
                    await run.tool("logs.search", {"q": long}, result=long)
                    run.answer(long)
            trace = await notes.trace("a-new-session")
            assert trace.run is not None
            assert (trace.run.step_count, trace.tool_invocations[0].result) == (1, long)
            assert abs(trace.agent_steps[0].created_at - trace.run.created_at) < timedelta(hours=1)
            assert (await notes.feedback("a-new-session", "useful", comment=long)).case_id is not None

            old = await notes.trace("checkout-slow")
            assert [step.id for step in old.agent_steps] == [2, 4, 5, 1, 3]
            assert old.self_evaluation == {"score": 0.75, "checks": ["évidence"]}
            given = await notes.feedback("checkout-slow", "not_useful", comment=long)
            assert given.run_id == compatibility_run_id("checkout-slow")

    asyncio.run(work())


def test_a_session_that_waits_reads_and_takes_feedback_on_adopted_tables(flyway: PostgresDatabase) -> None:
    upgrade(flyway)
    flyway.insert_session("late", answer="an answer", created_at="2025-06-01 10:00:00")

    async def work() -> None:
        async with casenotes.open(flyway.url) as notes:
            trace = await notes.trace("late")
            assert (trace.run, trace.answer) == (None, "an answer")
            assert trace.session.created_at == datetime(2025, 6, 1, 10, tzinfo=UTC)
            assert (await notes.feedback("late", "not_useful", comment="x" * 5000)).run_id is None

    asyncio.run(work())
    upgrade(flyway)
    run = flyway.row(
        "SELECT feedback, length(feedback_comment) AS length FROM diagnosis_run WHERE session_id = 'late'"
    )
    assert run == {"feedback": "not_useful", "length": 5000}


def test_all_that_does_not_fit_is_named_with_what_it_is_and_what_is_wanted(flyway: PostgresDatabase) -> None:
    flyway.script(
        """
        ALTER TABLE diagnosis_session ALTER updated_at DROP DEFAULT,
            ALTER updated_at TYPE bigint USING 0, ADD tenant TEXT NOT NULL DEFAULT '';
        ALTER TABLE agent_step ALTER id DROP DEFAULT, ADD tenant VARCHAR(9) NOT NULL DEFAULT '',
            ALTER step_number TYPE numeric(9, 2);
        ALTER TABLE agent_step ALTER tenant DROP DEFAULT;
        ALTER TABLE tool_invocation DROP result, ADD result BYTEA;
        """
    )
    before = flyway.dump()
    with pytest.raises(SchemaOutOfDate) as refused:
        upgrade(flyway)
    assert str(refused.value) == (
        "the database holds tables of the old system that do not fit: "
        "agent_step.id is integer without a default, wanted is one that the database assigns; "
        "agent_step.step_number is numeric(9,2), wanted is integer; "
        "agent_step.tenant is character varying(9) not null without a default, "
        "wanted is a default, as casenotes does not fill it; "
        "diagnosis_session.updated_at is bigint, wanted is timestamp with time zone; "
        "tool_invocation.result is bytea, wanted is text; "
        "change that and migrate again, or use an empty database"
    )
    assert flyway.dump() == before


def test_tables_of_the_first_revision_are_left_as_they_are(historical_on_server: PostgresDatabase) -> None:
    before = historical_on_server.columns()
    upgrade(historical_on_server)
    after = historical_on_server.columns()
    for table in TABLES:
        assert before[table].items() <= after[table].items()
