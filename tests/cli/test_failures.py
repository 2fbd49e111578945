"""What goes wrong is one line that says what to do: no traceback, no driver's words, no secret."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from support.cli import CommandLine

from casenotes.entrypoints.cli import trace


@contextmanager
def held(cli: CommandLine) -> Iterator[None]:
    """The database, held by another process that writes."""
    with closing(sqlite3.connect(cli.database, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.execute("ROLLBACK")


@pytest.mark.parametrize(
    "arguments",
    [["ask", "q"], ["trace", "s"], ["serve"], ["migrate", "status"], ["migrate", "upgrade"], ["demo"]],
)
def test_a_wrong_setting_is_named_and_its_value_is_not_repeated(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("CASENOTES_DATABASE_URL", "mysql://user:hunter2@host/db")
    line = cli(*arguments).refused(2)
    assert "CASENOTES_DATABASE_URL" in line
    assert "hunter2" not in line


@pytest.mark.parametrize(
    "arguments", [["trace", "s"], ["runs", "s"], ["feedback", "s", "useful"], ["erase", "s"]]
)
def test_a_record_that_is_not_there_is_not_made(cli: CommandLine, arguments: list[str]) -> None:
    assert "CASENOTES_DATABASE_URL" in cli(*arguments).refused(1)
    assert list(cli.folder.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["ask", "q"], ["trace", "s"], ["feedback", "s", "useful"], ["migrate", "upgrade"]]
)
def test_a_file_that_is_no_database_is_told_and_left_alone(cli: CommandLine, arguments: list[str]) -> None:
    cli.database.write_bytes(b"not a database at all, but a text of more than a hundred bytes" * 4)
    before = cli.database.read_bytes()
    line = cli(*arguments).refused(1)
    assert "is not an SQLite database; name another file" in line
    assert cli.database.read_bytes() == before


def test_a_schema_of_a_newer_version_is_told(cli: CommandLine) -> None:
    cli.record("q")
    with closing(sqlite3.connect(cli.database)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    for arguments in (["trace", "s-1"], ["ask", "q"]):
        line = cli(*arguments).refused(1)
        assert "9999" in line
        assert "version" in line
    status = cli("migrate", "status")
    assert status.status == 1
    assert "upgrade casenotes" in status.out


def test_a_database_that_is_held_is_told_with_what_to_do(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casenotes.adapters.sqlite.BUSY_SECONDS", 0)
    cli.record("q")
    with held(cli):
        line = cli("feedback", "s-1", "useful").refused(1)
        assert cli("trace", "s-1").status == 0
    assert "held by another process" in line
    assert "try again" in line


def test_a_fault_of_ours_is_one_line_without_the_exceptions_words(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_trace: object) -> str:
        raise RuntimeError("password=hunter2")

    cli.record("q")
    monkeypatch.setattr(trace, "trace_page", broken)
    line = cli("trace", "s-1").refused(1)
    assert "RuntimeError" in line
    assert "hunter2" not in line


def test_an_interruption_is_quiet(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_trace: object) -> str:
        raise KeyboardInterrupt

    cli.record("q")
    monkeypatch.setattr(trace, "trace_page", interrupted)
    done = cli("trace", "s-1")
    assert (done.status, done.out, done.err) == (130, "", "")


def test_others_cannot_be_served_without_a_key(cli: CommandLine) -> None:
    assert "--insecure" in cli("serve", "--host", "0.0.0.0", "--port", "0").refused(2)
