"""Sessions that nobody has used for a time are removed whole; what is removed by any way leaves a tombstone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta

import attrs
import pytest
from support.cli import CommandLine
from support.historical import PostgresDatabase
from support.postgres import until
from support.service import Backend, Running
from verification.conftest import Original, Recorded, restored

import casenotes
from casenotes.adapters.migration import upgrade
from casenotes.core.model import ChatSession
from casenotes.core.service.conversations import Conversations
from casenotes.core.views import Tombstone

LONG_AGO = "2025-01-01 00:00:00.000000"
IDLE = timedelta(days=90)


def idle_since_long_ago(recorded: Recorded, *sessions: str) -> None:
    for session in sessions:
        recorded.database.execute(
            "UPDATE chat_session SET last_active_at = ? WHERE session_id = ?", LONG_AGO, session
        )


def left_of(recorded: Recorded, session: str) -> dict[str, int]:
    """How many rows of each table are the session's; empty tables are left out."""
    tables = (
        "chat_session",
        "diagnosis_run",
        "agent_step",
        "tool_invocation",
        "case_library",
        "idempotency_key",
    )
    query = "SELECT count(*) AS number FROM {} WHERE session_id = ?"
    found = {table: recorded.database.row(query.format(table), session)["number"] for table in tables}
    return {table: number for table, number in found.items() if number}


def test_session_that_is_idle_is_removed_whole_and_another_stays(recorded: Recorded) -> None:
    recorded.tamper(
        "INSERT INTO idempotency_key (key, body_digest, session_id, run_id, created_at)"
        f" VALUES ('k', 'b', 's', '{{r1}}', '{LONG_AGO}')"
    )
    before = left_of(recorded, "t")
    idle_since_long_ago(recorded, "s")
    done = recorded.cli("prune", "--older-than", "90d")
    assert (done.status, done.out, done.err) == (
        0,
        "removed 1 session: 3 runs, 6 steps, 6 tool calls, 1 case\n",
        "",
    )
    assert left_of(recorded, "s") == {}
    assert left_of(recorded, "t") == before
    assert recorded.cli("verify").out == "verified 1 session, 2 runs: every promise holds\n"
    told = recorded.cli("verify", "s")
    assert told.status == 0
    assert told.out.startswith("s was erased 20")
    assert told.out.endswith("with 3 runs, 6 steps, 6 tool calls and 1 case\n")
    [erased] = recorded.cli("verify", "s", "--json").json["erased"]
    del erased["at"]
    assert erased == {"runs": 3, "agentSteps": 6, "toolInvocations": 6, "cases": 1}
    assert recorded.cli("prune", "--older-than", "90d", "--json").json == {
        "sessions": 0,
        "runs": 0,
        "agentSteps": 0,
        "toolInvocations": 0,
        "cases": 0,
    }


def test_session_with_a_running_run_stays(recorded: Recorded) -> None:
    recorded.tamper(
        "INSERT INTO diagnosis_run (run_id, session_id, query, status, agent_flow, created_at, updated_at)"
        f" VALUES ('run-running', 's', 'q', 'RUNNING', 'CHAT', '{LONG_AGO}', '{LONG_AGO}')"
    )
    idle_since_long_ago(recorded, "s", "t")
    assert recorded.cli("prune", "--older-than", "1w", "--json").json["sessions"] == 1
    assert left_of(recorded, "s")["diagnosis_run"] == 4
    assert left_of(recorded, "t") == {}


def test_more_sessions_than_are_looked_up_at_a_time_are_removed(recorded_file: Recorded) -> None:
    for n in range(120):
        row = {"session_id": f"many-{n}", "status": "ACTIVE", "created_at": LONG_AGO}
        recorded_file.database.insert("chat_session", **row, last_active_at=LONG_AGO)
    assert recorded_file.cli("prune", "--older-than", "36h", "--json").json["sessions"] == 120
    assert recorded_file.database.row("SELECT count(*) AS n FROM session_tombstone") == {"n": 120}
    assert recorded_file.cli("verify").status == 0


def test_pruned_session_of_the_old_system_does_not_come_back(
    recorded: Recorded,
) -> None:
    recorded.database.insert_session("old", query="q", answer="a")
    recorded.database.insert_step("old", step_number=1)
    asyncio.run(upgrade(recorded.database.url))
    assert left_of(recorded, "old")["agent_step"] == 1
    assert recorded.cli("verify", "old").status == 0
    assert recorded.cli("prune", "--older-than", "1d", "--json").json["sessions"] == 1
    assert asyncio.run(upgrade(recorded.database.url)).placed.sessions == 0
    assert left_of(recorded, "old") == {}
    assert recorded.database.rows("SELECT id FROM diagnosis_session") == []


def ahead_of(here: Running) -> Conversations:
    """The conversations of a service whose clock is a year ahead."""
    clock = here.service.conversations.clock
    return attrs.evolve(here.service.conversations, clock=lambda: clock() + timedelta(days=365))


def test_context_goes_with_its_session(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("hello", "s")
        assert await here.service.conversations.context.recall("s")
        removed = await ahead_of(here).pruned(IDLE)
        assert (removed.sessions, removed.runs) == (1, 1)
        assert not await here.service.conversations.context.recall("s")
        assert (await here.client.trace("s")).status == 404

    backend.run(scenario)


def test_session_that_is_used_while_others_go_stays(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        for name in ("s-1", "s-2", "s-3"):
            await here.client.ask("hello", name)
        gone: list[str] = []
        clock = here.service.conversations.clock
        ahead = ahead_of(here)
        async for erasure in ahead.prune(IDLE):
            if not gone:  # the list has been read; now the last of it is used, as it were a year later
                async with here.service.ledger.work() as work:
                    at = clock() + timedelta(days=365)
                    await work.sessions.use(ChatSession("s-3", at, at))
                    await work.commit()
            gone.append(erasure.session_id)
        assert sorted(gone) == ["s-1", "s-2"]
        assert (await here.client.trace("s-3")).status == 200

    backend.run(scenario)


WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def test_prune_that_waits_for_one_session_holds_up_nobody_else(
    original_on_server: Original, cli_at: Callable[[str], CommandLine]
) -> None:
    """On Postgres, where several write at once."""
    database = original_on_server.database
    assert isinstance(database, PostgresDatabase)
    url = database.url

    async def scenario() -> None:
        pruning = asyncio.create_task(prune())
        await until(url, WAITS, 1)
        async with casenotes.open(url) as notes:
            for session in ("t", "new"):
                async with notes.run("q", session=session) as run:
                    run.answer("a")
        assert not pruning.done()
        await asyncio.to_thread(held.close)
        assert (await pruning).sessions == 1  # t was used before its turn came

    async def prune() -> casenotes.Pruning:
        async with casenotes.open(url) as notes:
            return await notes.prune(IDLE)

    with restored(database):
        for session, month in (("s", 1), ("t", 2)):
            database.execute(
                "UPDATE chat_session SET last_active_at = ? WHERE session_id = ?",
                f"2025-{month:02}-01 00:00:00.000000",
                session,
            )
        with ExitStack() as held:
            held.enter_context(
                database.in_transaction("UPDATE chat_session SET status = status WHERE session_id = 's'")
            )
            asyncio.run(scenario())
        assert cli_at(url)("verify").status == 0


@pytest.mark.parametrize("days", [0, -1])
def test_prune_of_no_time_is_refused(backend: Backend, days: int) -> None:
    async def scenario() -> None:
        async with casenotes.open(backend.settings.database_url) as notes:
            with pytest.raises(casenotes.InvalidInput, match="older_than"):
                await notes.prune(timedelta(days=days))

    asyncio.run(scenario())


async def tombstones(here: Running, session: str) -> list[Tombstone]:
    async with here.service.ledger.view() as view:
        return list(await view.sessions.tombstones(session))


def test_session_erased_over_http_leaves_a_tombstone(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        digest = (await here.client.ask("hello", "s"))["runId"]
        digest = (await here.client.trace("s", digest)).data["run"]["digest"]
        assert (await here.client.delete("/api/chat/session/s")).status == 200
        [left] = await tombstones(here, "s")
        assert (left.runs, left.ended_run_count, left.last_run_digest) == (1, 1, digest)
        assert (await here.client.delete("/api/chat/session/s")).status == 404
        assert len(await tombstones(here, "s")) == 1

    backend.run(scenario)


def test_session_erased_by_the_command_or_the_library_leaves_a_tombstone(recorded: Recorded) -> None:
    assert recorded.cli("erase", "s").status == 0
    assert "s was erased" in recorded.cli("verify", "s").out

    async def erase() -> None:
        async with casenotes.open(recorded.database.url) as notes:
            await notes.erase("t")
            with pytest.raises(casenotes.SessionNotFound):
                await notes.verify("t")

    asyncio.run(erase())
    assert "with 2 runs, 4 steps, 4 tool calls and 1 case" in recorded.cli("verify", "t").out
    assert recorded.cli("verify").out == "verified 0 sessions, 0 runs: every promise holds\n"
    stored = recorded.database.rows("SELECT session_digest FROM session_tombstone")
    assert all(set(row["session_digest"]) <= set("0123456789abcdef") for row in stored)


def test_session_erased_and_used_anew_is_verified_as_it_is_now(recorded: Recorded) -> None:
    recorded.cli("erase", "s")

    async def use() -> None:
        async with casenotes.open(recorded.database.url) as notes, notes.run("q", session="s") as run:
            run.answer("a")

    asyncio.run(use())
    assert recorded.cli("verify", "s").out == "verified 1 session, 1 run: every promise holds\n"


def test_library_gives_what_it_found(recorded: Recorded) -> None:
    recorded.tamper("DELETE FROM agent_step WHERE run_id = '{r2}' AND sequence = 2")

    async def verify() -> None:
        async with casenotes.open(recorded.database.url) as notes:
            found = await notes.verify()
            assert (found.sessions, found.runs, found.running, found.without_digest) == (2, 5, 0, 0)
            assert not found.is_clean
            assert (casenotes.BreachKind.REMOVED, "s", recorded.ids["r2"]) in [
                (breach.kind, breach.session_id, breach.run_id) for breach in found.breaches
            ]
            assert (await notes.verify("t")).is_clean
            with pytest.raises(casenotes.SessionNotFound):
                await notes.verify("nowhere")
            with pytest.raises(casenotes.InvalidInput):
                await notes.verify("\x00")
            with pytest.raises(attrs.exceptions.FrozenInstanceError):
                found.runs = 0  # type: ignore[misc]

    asyncio.run(verify())
