"""The revisions make the tables that the ledger works with, step by step and back again."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from support.historical import (
    columns,
    execute,
    indexes,
    insert_session,
    insert_step,
    make_historical,
    row,
    rows,
    url,
)

from casenotes.adapters import migration
from casenotes.adapters.migration import scripts
from casenotes.adapters.sql.tables import metadata


def upgrade(path: Path, revision: str = "head") -> migration.MigrationReport:
    return asyncio.run(migration.upgrade(url(path), revision))


def alembic_to(path: Path, direction: str, revision: str) -> None:
    """What ``alembic upgrade|downgrade REVISION`` does."""
    config = scripts.configuration()
    config.set_main_option("sqlalchemy.url", url(path).replace("%", "%%"))
    getattr(command, direction)(config, revision)


def test_the_revision_that_ledgers_expect_is_the_newest() -> None:
    assert asyncio.run(migration.head_revision()) == migration.EXPECTED_REVISION


@pytest.mark.parametrize("adopted", [False, True], ids=["new", "adopted"])
def test_head_is_what_the_tables_say(new: Path, adopted: bool) -> None:
    if adopted:
        make_historical(new)
    upgrade(new)
    engine = sa.create_engine(f"sqlite:///{new}")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_head_is_made_column_by_column_as_create_all_makes_it(new: Path, tmp_path: Path) -> None:
    upgrade(new)
    reference = tmp_path / "reference.db"
    engine = sa.create_engine(f"sqlite:///{reference}")
    metadata.create_all(engine)
    engine.dispose()

    made = columns(new)
    del made["alembic_version"]
    assert made == columns(reference)
    assert indexes(new) == indexes(reference)


def test_ids_are_never_reused(new: Path) -> None:
    upgrade(new)
    tables = rows(new, "SELECT name, sql FROM sqlite_master WHERE type = 'table'")
    with_id = {table["name"] for table in tables if "AUTOINCREMENT" in table["sql"]}
    assert with_id == {"diagnosis_session", "diagnosis_run", "agent_step", "tool_invocation", "case_library"}


def test_orchestration_trace_revision_adds_one_nullable_column_and_nothing_else(historical: Path) -> None:
    upgrade(historical, "0002")
    before, indexes_before = columns(historical), indexes(historical)
    runs = rows(historical, "SELECT * FROM diagnosis_run ORDER BY id")

    upgrade(historical, "0003")

    after = columns(historical)
    assert after["diagnosis_run"].pop("orchestration_trace") == ("JSON", 0, None, 0)
    assert after == before
    assert indexes(historical) == indexes_before
    assert rows(historical, "SELECT * FROM diagnosis_run ORDER BY id") == [
        run | {"orchestration_trace": None} for run in runs
    ]


def test_one_revision_after_the_other_leads_to_the_same_head(new: Path, tmp_path: Path) -> None:
    for revision in scripts.revisions():
        report = upgrade(new, revision)
        assert (report.applied, report.to_revision) == ((revision,), revision)
    at_once = tmp_path / "at-once.db"
    upgrade(at_once)
    assert columns(new) == columns(at_once)
    assert indexes(new) == indexes(at_once)


def test_an_older_revision_than_the_database_has_changes_nothing(new: Path) -> None:
    upgrade(new)
    report = upgrade(new, "0002")
    assert (report.applied, report.to_revision) == ((), "0004")
    assert "orchestration_trace" in columns(new)["diagnosis_run"]


def test_revisions_take_no_definition_from_code_that_changes() -> None:
    versions = [
        file
        for file in files("casenotes.migrations").joinpath("versions").iterdir()
        if file.name[0].isdigit()
    ]
    assert len(versions) == len(scripts.revisions())
    for version in versions:
        assert "adapters.sql" not in version.read_text()


def test_plain_alembic_upgrades_and_places_the_old_rows(historical: Path) -> None:
    execute(historical, "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    execute(historical, "INSERT INTO alembic_version VALUES ('0001')")
    alembic_to(historical, "upgrade", "head")
    assert row(historical, "SELECT count(*) AS runs FROM diagnosis_run") == {"runs": 11}


@pytest.mark.parametrize("revision", ["0003", "0002", "0001"])
def test_downgrade_restores_the_schema_of_that_revision(new: Path, tmp_path: Path, revision: str) -> None:
    reference = tmp_path / "reference.db"
    upgrade(reference, revision)
    upgrade(new)
    alembic_to(new, "downgrade", revision)
    assert columns(new) == columns(reference)
    assert indexes(new) == indexes(reference)
    assert upgrade(new).to_revision == migration.EXPECTED_REVISION


def test_downgrade_to_the_old_system_keeps_its_rows_and_takes_those_of_new_runs(historical: Path) -> None:
    tables = ("diagnosis_session", "agent_step", "tool_invocation", "case_library")
    before = {table: rows(historical, f"SELECT * FROM {table}") for table in tables}
    upgrade(historical)
    insert_step(historical, "checkout-slow", run_id="run-new", sequence=1)
    execute(
        historical,
        "INSERT INTO case_library (diagnosis_id, source, created_at, updated_at) VALUES ('run-new', 'AUTO', 0, 0)",
    )

    alembic_to(historical, "downgrade", "0001")

    assert {table: rows(historical, f"SELECT * FROM {table}") for table in tables} == before
    insert_session(historical, "written by the old system")
    assert upgrade(historical).placed.sessions == 12


def test_the_old_system_s_own_tables_cannot_be_downgraded_away(historical: Path) -> None:
    upgrade(historical)
    with pytest.raises(NotImplementedError):
        alembic_to(historical, "downgrade", "base")
    assert len(rows(historical, "SELECT * FROM diagnosis_run")) == 11
