"""Databases that cannot be migrated: left as they are, with a sentence that says what to do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.historical import OldDatabase, SqliteDatabase

from casenotes.adapters import migration
from casenotes.adapters.migration import Placed, Rows
from casenotes.adapters.migration.connections import open_engine
from casenotes.core.errors import InvalidInput, LedgerUnavailable, SchemaOutOfDate
from casenotes.core.rules import compatibility_run_id


def upgrade(database: OldDatabase, revision: str = "head") -> migration.MigrationReport:
    return asyncio.run(migration.upgrade(database.url, revision))


def status(database: OldDatabase) -> migration.MigrationStatus:
    return asyncio.run(migration.status(database.url))


def test_tables_of_the_old_system_are_adopted_as_they_are(historical: OldDatabase) -> None:
    report = upgrade(historical)
    assert report.adopted
    assert report.from_revision is None
    assert report.applied == ("0002", "0003", "0004", "0005", "0006")


def test_tables_that_lack_something_are_not_adopted_and_all_they_lack_is_named(
    historical: OldDatabase,
) -> None:
    for change in (
        "DROP TABLE case_library",
        "ALTER TABLE agent_step DROP COLUMN model",
        "ALTER TABLE tool_invocation RENAME COLUMN result TO outcome",
        "ALTER TABLE diagnosis_session DROP COLUMN updated_at",
        "ALTER TABLE agent_step ADD COLUMN run_id TEXT",
    ):
        historical.execute(change)
    before = historical.dump()
    with pytest.raises(SchemaOutOfDate) as refused:
        upgrade(historical)
    assert str(refused.value) == (
        "the database holds tables of the old system that do not fit: diagnosis_session has no column updated_at; "
        "agent_step has no column model; agent_step has a column run_id, a name that casenotes needs for its own; "
        "tool_invocation has no column result; there is no table case_library; "
        "change that and migrate again, or use an empty database"
    )
    assert historical.dump() == before


def test_adopted_sessions_are_indexed_once(new: OldDatabase) -> None:
    new.make_historical(unique=False)
    upgrade(new)
    assert "ix_diagnosis_session_session" in new.indexes()


def test_tables_of_a_later_revision_without_a_revision_are_refused(new: OldDatabase) -> None:
    upgrade(new)
    new.execute("DELETE FROM alembic_version")
    with pytest.raises(SchemaOutOfDate, match="has a table chat_session but no revision"):
        upgrade(new)


def test_a_database_that_a_newer_version_migrated_is_refused_and_its_status_told(new: OldDatabase) -> None:
    upgrade(new)
    new.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(
        SchemaOutOfDate, match=r"is at revision 9999, .* knows none after 0006; run the newer version"
    ):
        upgrade(new)
    found = status(new)
    assert (found.current, found.is_current, found.is_unknown, found.pending) == ("9999", False, True, ())


def test_a_database_at_several_revisions_is_refused(new: OldDatabase) -> None:
    upgrade(new)
    new.execute("INSERT INTO alembic_version VALUES ('0002')")
    with pytest.raises(SchemaOutOfDate, match=r"several revisions at once \(0002, 0006\)"):
        upgrade(new)


def test_a_revision_that_does_not_exist_is_refused(new_file: SqliteDatabase) -> None:
    with pytest.raises(
        InvalidInput,
        match="revision: there is no such revision; known are 0001, 0002, 0003, 0004, 0005, 0006",
    ):
        upgrade(new_file, "0042")
    assert not new_file.path.exists()


def test_a_file_that_is_no_database_is_refused_by_name_and_left_alone(new_file: SqliteDatabase) -> None:
    new_file.path.write_bytes(b"notes from the last incident, in plain text" * 100)
    with pytest.raises(LedgerUnavailable) as refused:
        upgrade(new_file)
    assert str(refused.value) == (
        f"the database file {new_file.path} is not an SQLite database; "
        "name another file, or move this one out of the way"
    )
    assert new_file.path.read_bytes().startswith(b"notes from the last incident")
    with pytest.raises(LedgerUnavailable):
        status(new_file)


def test_a_damaged_database_is_refused_by_name(historical_file: SqliteDatabase) -> None:
    content = bytearray(historical_file.path.read_bytes())
    content[100:4096] = b"\xff" * 3996  # the page with the schema, behind the header
    historical_file.path.write_bytes(content)
    with pytest.raises(
        LedgerUnavailable, match=f"{historical_file.path} is damaged; restore it from a backup"
    ):
        upgrade(historical_file)


def test_a_database_that_may_not_be_written_is_refused_by_name(historical_file: SqliteDatabase) -> None:
    # Opened for reading only: the file's mode would not stop root, as which the tests may run.
    with pytest.raises(
        LedgerUnavailable, match=f"{historical_file.path} cannot be written; give this user the right"
    ):
        asyncio.run(migration.upgrade(f"sqlite+aiosqlite:///file:{historical_file.path}?mode=ro&uri=true"))


def test_a_database_at_head_is_only_read(historical_file: SqliteDatabase) -> None:
    upgrade(historical_file)
    report = asyncio.run(
        migration.upgrade(f"sqlite+aiosqlite:///file:{historical_file.path}?mode=ro&uri=true")
    )
    assert report.to_revision == "0006"


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match=r"no-such/x.db cannot be opened; its folder must exist"):
        upgrade(SqliteDatabase(tmp_path / "no-such" / "x.db"))


def test_a_database_that_another_process_holds_is_refused_after_a_while(
    historical_file: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with historical_file.connected() as holder, monkeypatch.context() as patch:
        patch.setattr("casenotes.adapters.migration.connections.BUSY_SECONDS", 0.1)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            LedgerUnavailable, match=f"{historical_file.path} is held by someone else"
        ) as refused:
            upgrade(historical_file)
        assert "locked" not in str(refused.value)
    assert upgrade(historical_file).to_revision == "0006"


def test_status_of_a_file_that_is_not_there_makes_none(new_file: SqliteDatabase) -> None:
    found = status(new_file)
    assert (found.current, found.is_current, found.pending) == (
        None,
        False,
        ("0001", "0002", "0003", "0004", "0005", "0006"),
    )
    assert not new_file.path.exists()


def test_status_of_the_old_system_s_database_counts_what_a_migration_would_place(
    historical: OldDatabase,
) -> None:
    before = historical.dump()
    found = status(historical)
    assert (found.current, found.pending) == (None, ("0001", "0002", "0003", "0004", "0005", "0006"))
    assert found.waiting == Placed(sessions=11, steps=6, tools=4)
    assert (found.leftovers.steps.count, found.leftovers.tools.count) == (1, 2)
    assert historical.dump() == before


def test_status_at_head_tells_what_waits_and_what_cannot_be_placed(historical: OldDatabase) -> None:
    upgrade(historical)
    historical.insert_run(compatibility_run_id("shut out"), "other")
    for session_id in ("shut out", "late"):
        historical.insert_session(session_id)
        historical.insert_step(session_id)
        historical.insert_tool(session_id)
    found = status(historical)
    assert found.is_current
    assert found.waiting == Placed(sessions=1, steps=1, tools=1)
    assert found.leftovers.sessions == Rows(1, ("shut out",))
    assert found.leftovers.steps == Rows(2, ("shut out", "vanished"))
    assert found.leftovers.tools.count == 3
    assert upgrade(historical).placed == found.waiting


def test_short_urls_are_understood(new_file: SqliteDatabase) -> None:
    assert asyncio.run(migration.upgrade(f"sqlite:///{new_file.path}")).to_revision == "0006"
    assert open_engine("postgres://u@h/d").url.drivername == "postgresql+asyncpg"
