"""Starting on stores that are old, empty or away."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from replicas.stores import Stores
from support.http import client_of
from support.postgres import PostgresDatabases, rows
from support.process import SERVE, Process, service_process

import casenotes
from casenotes.adapters.migration import EXPECTED_REVISION
from casenotes.core.errors import InvalidSettings, LedgerUnavailable, SchemaOutOfDate
from casenotes.entrypoints import bootstrap
from casenotes.entrypoints.ambient import utc_now
from casenotes.entrypoints.settings import Settings

NOWHERE = "postgresql://nobody:hunter2@/nowhere?host=/nonexistent"


def command(url: str, *arguments: str, **environ: str) -> subprocess.Popen[str]:
    """A casenotes command on a ledger, begun."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("CASENOTES_")}
    return subprocess.Popen(
        [sys.executable, "-m", "casenotes", *arguments],
        env={**known, "CASENOTES_DATABASE_URL": url, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The command's status, and what it said."""
    out, err = process.communicate(timeout=120)
    return process.returncode, (out + err).strip()


@pytest.fixture
def historical(postgres: PostgresDatabases) -> Iterator[str]:
    """The database of an old system, with two sessions that it ran."""
    with postgres.copy("0001") as url:
        asyncio.run(_fill(url))
        yield url


async def _fill(url: str) -> None:
    for session_id in ("old-1", "old-2"):
        await rows(
            url,
            "insert into diagnosis_session (session_id, query, answer, status, created_at, updated_at)"
            " values (:id, 'q', 'old answer', 'SUCCESS', now(), now())",
            id=session_id,
        )
        await rows(
            url,
            "insert into agent_step (session_id, step_number, agent_name, status, created_at)"
            " values (:id, 1, 'planner', 'SUCCESS', now())",
            id=session_id,
        )


def test_old_schema_is_refused_with_what_to_run(historical: str) -> None:
    status, said = ended(command(historical, "serve", "--port", "0"))
    assert status == 1
    assert "casenotes migrate upgrade" in said and "0001" in said and said.count("\n") == 0
    status, said = ended(command(historical, "migrate", "status"))
    assert status == 1 and "run casenotes migrate upgrade" in said


def test_library_migrates_when_it_is_told_to(historical: str) -> None:
    async def scenario() -> None:
        with pytest.raises(SchemaOutOfDate, match="casenotes migrate upgrade"):
            async with casenotes.open(historical):
                pass
        async with casenotes.open(historical, migrate=True) as notes:
            async with notes.run("a new question", session="old-1") as run:
                run.answer("a new answer")
            first, second = await notes.runs("old-1")
            assert (first.answer_preview, second.answer_preview) == ("a new answer", "old answer")

    asyncio.run(scenario())


@pytest.mark.parametrize("revision", ["empty", "historical"])
def test_three_replicas_that_migrate_and_start_at_once_all_serve(
    request: pytest.FixtureRequest,
    postgres: PostgresDatabases,
    fresh_redis: str,
    tmp_path: Path,
    revision: str,
) -> None:
    async def serves(replica: Process) -> None:
        async with client_of(replica.url) as client:
            assert (await client.get("/readyz")).data == {"ledger": "ready", "context": "ready"}
            assert (await client.ask("anything new?", "s-1"))["success"]

    async def migrated_once(stores: Stores) -> None:
        assert await stores.rows("select * from alembic_version") == [{"version_num": EXPECTED_REVISION}]
        old = await stores.rows("select answer from diagnosis_run where session_id like 'old-%'")
        assert old == [{"answer": "old answer"}] * (2 if revision == "historical" else 0)
        await stores.require_unmixed()

    with ExitStack() as stack:
        if revision == "historical":
            url = request.getfixturevalue("historical")
        else:
            url = stack.enter_context(postgres.empty())
        stores = Stores(url, fresh_redis)

        def start(name: str) -> Process:
            """As a unit or a container does it: migrate, then serve."""
            status, said = ended(command(url, "migrate", "upgrade"))
            assert status == 0, said
            (tmp_path / name).mkdir()
            return stack.enter_context(service_process(tmp_path / name, SERVE, **stores.settings))

        with ThreadPoolExecutor(3) as at_once:
            replicas = list(at_once.map(start, ("one", "two", "three")))
        for replica in replicas:
            asyncio.run(serves(replica))
        asyncio.run(migrated_once(stores))


def test_ledger_that_is_away_is_told_in_a_sentence() -> None:
    for arguments in (["serve", "--port", "0"], ["migrate", "upgrade"], ["runs", "s-1"]):
        status, said = ended(command(NOWHERE, *arguments))
        assert status == 1, said
        assert "cannot be reached" in said and "see that it runs" in said and said.count("\n") == 0
        assert "hunter2" not in said


def test_conversations_that_are_away_keep_nobody_from_starting(
    postgres: PostgresDatabases, tmp_path: Path
) -> None:
    async def scenario(replica: Process) -> None:
        async with client_of(replica.url) as client:
            ready = await client.get("/readyz")
            assert (ready.status, ready.data) == (200, {"ledger": "ready", "context": "unavailable"})
            answer = await client.ask("anything new?", "s-1")
            assert answer["success"] and answer["contextDegraded"]

    with (
        postgres.copy("head") as url,
        service_process(tmp_path, SERVE, database_url=url, context_url="redis://127.0.0.1:1/0") as replica,
    ):
        asyncio.run(scenario(replica))


@pytest.mark.parametrize(
    ("module", "settings", "extra"),
    [
        ("asyncpg", Settings(database_url="postgresql://somebody@host/db"), "postgres"),
        ("redis", Settings(database_url="memory://", context_url="redis://host:6379/0"), "redis"),
    ],
)
def test_driver_that_is_not_installed_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, module: str, settings: Settings, extra: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "casenotes.adapters.context.redis", raising=False)
    for name in [name for name in sys.modules if name.startswith("casenotes.adapters.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("casenotes.adapters.postgres", raising=False)
    monkeypatch.setattr(sys, "meta_path", [_Missing(module), *sys.meta_path])

    async def scenario() -> None:
        ledger = await bootstrap.open_ledger_at(settings.database_url)
        await ledger.close()
        bootstrap.open_context_at(settings, utc_now)

    with pytest.raises(InvalidSettings, match=rf"pip install 'casenotes\[{extra}\]'"):
        asyncio.run(scenario())


class _Missing:
    """Finds that a package is not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname.partition(".")[0] == self.name:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=self.name)


def test_ledger_that_is_away_when_the_library_opens_it_says_so() -> None:
    async def scenario() -> None:
        with pytest.raises(LedgerUnavailable, match="cannot be reached; see that it runs"):
            async with casenotes.open(NOWHERE):
                pass

    asyncio.run(scenario())
