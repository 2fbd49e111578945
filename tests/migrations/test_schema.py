"""The revisions make the tables that the ledger works with, step by step and back again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.resources import files

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from support.historical import MOMENT, TABLES, OldDatabase, SqliteDatabase

from casenotes.adapters import migration
from casenotes.adapters.migration import scripts
from casenotes.adapters.sql.tables import metadata


def upgrade(database: OldDatabase, revision: str = "head") -> migration.MigrationReport:
    return asyncio.run(migration.upgrade(database.url, revision))


def alembic_to(database: OldDatabase, direction: str, revision: str) -> None:
    """What ``alembic upgrade|downgrade REVISION`` does."""
    config = scripts.configuration()
    config.set_main_option("sqlalchemy.url", database.url.replace("%", "%%"))
    getattr(command, direction)(config, revision)


def test_the_revision_that_ledgers_expect_is_the_newest() -> None:
    assert asyncio.run(migration.head_revision()) == migration.EXPECTED_REVISION


@pytest.mark.parametrize("adopted", [False, True], ids=["new", "adopted"])
def test_head_is_what_the_tables_say(new: OldDatabase, adopted: bool) -> None:
    if adopted:
        new.make_historical()
    upgrade(new)

    def differences(connection: sa.Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection), metadata))

    assert new.run(differences) == []


def test_head_is_made_column_by_column_as_create_all_makes_it(another: Callable[[], OldDatabase]) -> None:
    migrated, reference = another(), another()
    upgrade(migrated)
    reference.run(metadata.create_all)

    made = migrated.columns()
    del made["alembic_version"]
    assert made == reference.columns()
    assert migrated.indexes() == reference.indexes()


def test_ids_are_never_reused(new_file: SqliteDatabase) -> None:
    upgrade(new_file)
    tables = new_file.rows("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
    with_id = {table["name"] for table in tables if "AUTOINCREMENT" in table["sql"]}
    assert with_id == {
        "diagnosis_session",
        "diagnosis_run",
        "agent_step",
        "tool_invocation",
        "case_library",
        "session_tombstone",
    }


def test_orchestration_trace_revision_adds_one_nullable_column_and_nothing_else(
    historical: OldDatabase,
) -> None:
    upgrade(historical, "0002")
    before, indexes_before = historical.columns(), historical.indexes()
    runs = historical.rows("SELECT * FROM diagnosis_run ORDER BY id")
    assert len(runs) == 11

    upgrade(historical, "0003")

    after = historical.columns()
    type_, required, default, *_ = after["diagnosis_run"].pop("orchestration_trace")
    assert (type_.lower().removesuffix("b"), bool(required), default) == ("json", False, None)
    assert after == before
    assert historical.indexes() == indexes_before
    assert historical.rows("SELECT * FROM diagnosis_run ORDER BY id") == [
        run | {"orchestration_trace": None} for run in runs
    ]


def test_one_revision_after_the_other_leads_to_the_same_head(another: Callable[[], OldDatabase]) -> None:
    stepwise, at_once = another(), another()
    for revision in scripts.revisions():
        report = upgrade(stepwise, revision)
        assert (report.applied, report.to_revision) == ((revision,), revision)
    upgrade(at_once)
    assert stepwise.columns() == at_once.columns()
    assert stepwise.indexes() == at_once.indexes()


def test_an_older_revision_than_the_database_has_changes_nothing(new: OldDatabase) -> None:
    upgrade(new)
    report = upgrade(new, "0002")
    assert (report.applied, report.to_revision) == ((), "0006")
    assert "orchestration_trace" in new.columns()["diagnosis_run"]


def test_revisions_take_no_definition_from_code_that_changes() -> None:
    versions = [
        file
        for file in files("casenotes.migrations").joinpath("versions").iterdir()
        if file.name[0].isdigit()
    ]
    assert len(versions) == len(scripts.revisions())
    for version in versions:
        assert "adapters.sql" not in version.read_text()


def test_plain_alembic_upgrades_and_places_the_old_rows(historical: OldDatabase) -> None:
    historical.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    historical.execute("INSERT INTO alembic_version VALUES ('0001')")
    alembic_to(historical, "upgrade", "head")
    assert historical.row("SELECT count(*) AS runs FROM diagnosis_run") == {"runs": 11}


def test_downgrades_restore_the_schema_of_each_revision(another: Callable[[], OldDatabase]) -> None:
    migrated = another()
    upgrade(migrated)
    for revision in scripts.revisions()[-2::-1]:
        reference = another()
        upgrade(reference, revision)
        alembic_to(migrated, "downgrade", revision)
        assert migrated.columns() == reference.columns()
        assert migrated.indexes() == reference.indexes()
    assert upgrade(migrated).to_revision == migration.EXPECTED_REVISION


def test_downgrade_to_the_old_system_keeps_its_rows_and_takes_those_of_new_runs(
    historical: OldDatabase,
) -> None:
    before = {table: historical.rows(f"SELECT * FROM {table} ORDER BY id") for table in TABLES}
    upgrade(historical)
    historical.insert_step("checkout-slow", run_id="run-new", sequence=1)
    historical.insert(
        "case_library", diagnosis_id="run-new", source="AUTO", created_at=MOMENT, updated_at=MOMENT
    )

    alembic_to(historical, "downgrade", "0001")

    assert {table: historical.rows(f"SELECT * FROM {table} ORDER BY id") for table in TABLES} == before
    historical.insert_session("written by the old system")
    assert upgrade(historical).placed.sessions == 12


def test_the_old_system_s_own_tables_cannot_be_downgraded_away(historical_file: SqliteDatabase) -> None:
    upgrade(historical_file)
    with pytest.raises(NotImplementedError):
        alembic_to(historical_file, "downgrade", "base")
    assert len(historical_file.rows("SELECT * FROM diagnosis_run")) == 11
