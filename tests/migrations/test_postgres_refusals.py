"""What a server refuses, in plain words: what is wrong and what to do, no secret, and none of the driver's words."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy.engine import make_url
from support.historical import PostgresDatabase

from casenotes.adapters import migration
from casenotes.adapters.migration import connections, failures
from casenotes.core.errors import CasenotesError, LedgerUnavailable

SECRET = "hunter2"


def upgrade(url: str) -> migration.MigrationReport:
    return asyncio.run(migration.upgrade(url))


def refusal(url: str) -> str:
    with pytest.raises(LedgerUnavailable) as refused:
        upgrade(url)
    message = str(refused.value)
    assert SECRET not in message
    for word in ("asyncpg", "SQL", "Error", "sqlalche", "postgresql+"):
        assert word not in message
    return message


def changed(url: str, **parts: object) -> str:
    return make_url(url).set(**parts).render_as_string(hide_password=False)  # type: ignore[arg-type]


@contextmanager
def user(database: PostgresDatabase) -> Iterator[str]:
    """A user that may connect, and own nothing."""
    name = f"user_{make_url(database.url).database}"
    database.script(f"CREATE USER {name} PASSWORD '{SECRET}'")
    try:
        yield name
    finally:
        database.script(f"DROP OWNED BY {name}; DROP USER {name}")


def test_a_database_that_does_not_exist_is_named(new_on_server: PostgresDatabase) -> None:
    message = refusal(changed(new_on_server.url, database="no-such", password=SECRET))
    assert message.startswith("the database no-such on ")
    assert message.endswith(" does not exist; create it, or name the one that is meant")


def test_a_user_that_the_server_does_not_know_is_refused(new_on_server: PostgresDatabase) -> None:
    message = refusal(changed(new_on_server.url, username="nobody-here", password=SECRET))
    assert "refuses this user or its password; see that both are right" in message


@pytest.mark.parametrize("place", ["127.0.0.1:1", "/?host=/nonexistent&port=1", "no-such-host.invalid"])
def test_a_server_that_is_not_there_is_named(place: str) -> None:
    host, _, query = place.partition("/?")
    query = f"?{query}" if query else ""
    message = refusal(f"postgresql://me:{SECRET}@{host}/notes{query}")
    named = "/nonexistent" if query else host.partition(":")[0]
    assert message == (
        f"the database notes on {named} cannot be reached; see that it runs and that its address is right"
    )


def test_a_server_that_does_not_answer_is_given_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        message = refusal(f"postgresql://me:{SECRET}@127.0.0.1:{silent.getsockname()[1]}/notes")
    assert "cannot be reached" in message


def test_a_user_that_may_not_make_tables_is_told_whose_right_is_missing(
    new_on_server: PostgresDatabase,
) -> None:
    with user(new_on_server) as name:
        message = refusal(changed(new_on_server.url, username=name, password=SECRET))
    assert "does not let this user change its tables; migrate as the user that owns them" in message


def test_a_user_that_does_not_own_the_old_tables_changes_nothing(
    historical_on_server: PostgresDatabase,
) -> None:
    before = historical_on_server.dump()
    with user(historical_on_server) as name:
        historical_on_server.script(
            f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {name}; GRANT ALL ON SCHEMA public TO {name}"
        )
        message = refusal(changed(historical_on_server.url, username=name, password=SECRET))
    assert "migrate as the user that owns them" in message
    assert historical_on_server.dump() == before


def test_a_server_that_takes_no_writes_can_be_asked_and_not_migrated(
    historical_on_server: PostgresDatabase,
) -> None:
    name = make_url(historical_on_server.url).database
    historical_on_server.script(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert asyncio.run(migration.status(historical_on_server.url)).waiting.sessions == 11
    assert "takes no writes; name the primary server, not a replica" in refusal(historical_on_server.url)


def test_another_migration_is_waited_for_only_so_long(
    historical_on_server: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "TURN_SECONDS", 0.2)
    before = historical_on_server.dump()
    with historical_on_server.in_transaction(f"SELECT pg_advisory_xact_lock({connections.MIGRATION_LOCK})"):
        message = refusal(historical_on_server.url)
    assert "is being migrated by another process, which has not come to an end" in message
    assert historical_on_server.dump() == before
    assert upgrade(historical_on_server.url).placed.sessions == 11


def test_a_table_that_the_old_system_holds_is_waited_for_only_so_long(
    historical_on_server: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LOCK_SECONDS", 0.2)
    with historical_on_server.in_transaction("SELECT count(*) FROM agent_step"):
        assert "has a table or a row that other work holds" in refusal(historical_on_server.url)
    assert upgrade(historical_on_server.url).placed.sessions == 11


def test_the_database_s_own_settings_do_not_get_in_the_way(historical_on_server: PostgresDatabase) -> None:
    name = make_url(historical_on_server.url).database
    historical_on_server.script(
        f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable';"
        f"ALTER DATABASE {name} SET statement_timeout = '1h'; ALTER DATABASE {name} SET TimeZone = 'Asia/Tokyo'"
    )
    assert upgrade(historical_on_server.url).placed.sessions == 11


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("28P01", "refuses this user or its password"),
        ("53100", "the disk is full"),
        ("53300", "takes no more connections"),
        ("53200", "is out of memory"),
        ("57P01", "stopped the work, or is being shut down"),
        ("57P03", "is starting or stopping"),
        ("40P01", "gave way to other work"),
        ("58030", "failed at its files"),
        ("XX000", "refused the work"),
    ],
)
def test_each_kind_of_failure_has_its_words(state: str, words: str) -> None:
    class Refused(Exception):
        sqlstate = state

    with (
        pytest.raises(CasenotesError, match=words),
        failures.in_plain_words(make_url("postgresql://u:p@h/d")),
    ):
        raise Refused(SECRET)
