"""Databases that cannot be migrated: left as they are, with a sentence that says what to do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.historical import connected, dump, execute, insert_session, make_historical, url

from casenotes.adapters import migration
from casenotes.adapters.migration import Rows
from casenotes.adapters.migration.connections import open_engine
from casenotes.core.errors import InvalidInput, LedgerUnavailable, SchemaOutOfDate


def upgrade(path: Path, revision: str = "head") -> migration.MigrationReport:
    return asyncio.run(migration.upgrade(url(path), revision))


def status(path: Path) -> migration.MigrationStatus:
    return asyncio.run(migration.status(url(path)))


def test_tables_of_the_old_system_are_adopted_as_they_are(historical: Path) -> None:
    report = upgrade(historical)
    assert report.adopted
    assert report.from_revision is None
    assert report.applied == ("0002", "0003", "0004")


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ("DROP TABLE case_library", "it has no table case_library"),
        ("ALTER TABLE agent_step DROP COLUMN model", "its table agent_step has no column model"),
        (
            "ALTER TABLE tool_invocation RENAME COLUMN result TO outcome",
            "its table tool_invocation has no column result",
        ),
        (
            "ALTER TABLE diagnosis_session DROP COLUMN updated_at",
            "its table diagnosis_session has no column updated_at",
        ),
    ],
)
def test_tables_that_lack_something_are_not_adopted_and_what_they_lack_is_named(
    historical: Path, change: str, missing: str
) -> None:
    execute(historical, change)
    before = dump(historical)
    with pytest.raises(SchemaOutOfDate, match=f"holds tables of the old system, but {missing}; add it"):
        upgrade(historical)
    assert dump(historical) == before


def test_adopted_sessions_are_indexed_once(new: Path) -> None:
    make_historical(new, unique=False)
    upgrade(new)
    assert any("ix_diagnosis_session_session" in line for line in dump(new))


def test_tables_of_a_later_revision_without_a_revision_are_refused(new: Path) -> None:
    upgrade(new)
    execute(new, "DELETE FROM alembic_version")
    with pytest.raises(SchemaOutOfDate, match="has a table chat_session but no revision"):
        upgrade(new)


def test_a_database_that_a_newer_version_migrated_is_refused_and_its_status_told(new: Path) -> None:
    upgrade(new)
    execute(new, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(
        SchemaOutOfDate, match=r"is at revision 9999, .* knows none after 0004; run the newer version"
    ):
        upgrade(new)
    found = status(new)
    assert (found.current, found.is_current, found.is_unknown, found.pending) == ("9999", False, True, ())


def test_a_database_at_several_revisions_is_refused(new: Path) -> None:
    upgrade(new)
    execute(new, "INSERT INTO alembic_version VALUES ('0002')")
    with pytest.raises(SchemaOutOfDate, match=r"several revisions at once \(0002, 0004\)"):
        upgrade(new)


def test_a_revision_that_does_not_exist_is_refused(new: Path) -> None:
    with pytest.raises(
        InvalidInput, match="revision: there is no such revision; known are 0001, 0002, 0003, 0004"
    ):
        upgrade(new, "0042")
    assert not new.exists()


def test_a_file_that_is_no_database_is_refused_by_name_and_left_alone(new: Path) -> None:
    new.write_bytes(b"notes from the last incident, in plain text" * 100)
    with pytest.raises(LedgerUnavailable) as refused:
        upgrade(new)
    assert str(refused.value) == (
        f"the database file {new} is not an SQLite database; name another file, or move this one out of the way"
    )
    assert new.read_bytes().startswith(b"notes from the last incident")
    with pytest.raises(LedgerUnavailable):
        status(new)


def test_a_damaged_database_is_refused_by_name(historical: Path) -> None:
    content = bytearray(historical.read_bytes())
    content[100:4096] = b"\xff" * 3996  # the page with the schema, behind the header
    historical.write_bytes(content)
    with pytest.raises(LedgerUnavailable, match=f"{historical} is damaged; restore it from a backup"):
        upgrade(historical)


def test_a_database_that_may_not_be_written_is_refused_by_name(historical: Path) -> None:
    # Opened for reading only: the file's mode would not stop root, as which the tests may run.
    with pytest.raises(LedgerUnavailable, match=f"{historical} cannot be written; give this user the right"):
        asyncio.run(migration.upgrade(f"sqlite+aiosqlite:///file:{historical}?mode=ro&uri=true"))


def test_a_database_at_head_is_only_read(historical: Path) -> None:
    upgrade(historical)
    report = asyncio.run(migration.upgrade(f"sqlite+aiosqlite:///file:{historical}?mode=ro&uri=true"))
    assert report.to_revision == "0004"


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match=r"no-such/x.db cannot be opened; its folder must exist"):
        upgrade(tmp_path / "no-such" / "x.db")


def test_a_database_that_another_process_holds_is_refused_after_a_while(historical: Path) -> None:
    async def migrate() -> None:
        engine = open_engine(url(historical), busy_seconds=0.1)
        try:
            await migration.upgrade(engine)
        finally:
            await engine.dispose()

    with connected(historical) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable, match=f"{historical} is held by someone else") as refused:
            asyncio.run(migrate())
        assert "locked" not in str(refused.value)
    assert upgrade(historical).to_revision == "0004"


def test_status_of_a_file_that_is_not_there_makes_none(new: Path) -> None:
    found = status(new)
    assert (found.current, found.is_current, found.pending) == (None, False, ("0001", "0002", "0003", "0004"))
    assert not new.exists()


def test_status_of_the_old_system_s_database_counts_what_a_migration_would_look_at(historical: Path) -> None:
    before = dump(historical)
    found = status(historical)
    assert (found.leftovers.sessions.count, found.leftovers.steps.count, found.leftovers.tools.count) == (
        11,
        7,
        6,
    )
    assert found.pending == ("0001", "0002", "0003", "0004")
    assert dump(historical) == before


def test_status_at_head_tells_what_is_in_no_run(historical: Path) -> None:
    upgrade(historical)
    insert_session(historical, "late")
    found = status(historical)
    assert found.is_current
    assert found.leftovers.sessions == Rows(1, ("late",))
    assert found.leftovers.steps == Rows(1, ("vanished",))


def test_short_urls_are_understood(new: Path) -> None:
    assert asyncio.run(migration.upgrade(f"sqlite:///{new}")).to_revision == "0004"
    assert open_engine("postgres://u@h/d").url.drivername == "postgresql+asyncpg"
