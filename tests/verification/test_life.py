"""A record to which nothing was done but what the service does is clean, at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import pytest
from support.cli import CommandLine
from support.historical import OldDatabase, PostgresDatabase, SqliteDatabase
from support.postgres import PostgresDatabases
from support.scripted import Scripted, usual
from support.service import Backend, Running

import casenotes
from casenotes.adapters.migration import upgrade
from casenotes.core.seal import session_digest
from casenotes.core.service.verifying import Verification
from casenotes.entrypoints import bootstrap
from casenotes.ports.agent import AgentEvent, Enquiry


async def verified(here: Running) -> Verification:
    return await bootstrap.verifying(here.service.ledger).all()


async def as_asked(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    """Fails, waits for ever, or answers, as the question says."""
    async for event in usual(enquiry):
        yield event
        if "fail" in enquiry.question:
            raise RuntimeError("asked to")
        if "wait" in enquiry.question:
            await asyncio.sleep(3600)


async def chat(here: Running, session: str, question: str) -> str:
    reply = await here.client.post("/api/chat", {"sessionId": session, "question": question})
    return str(reply.data["runId"])


async def started(here: Running, session: str) -> None:
    """Wait until the session's latest run is running."""
    async with asyncio.timeout(30):
        while True:
            trace = await here.client.trace(session)
            if trace.status == 200 and trace.data["run"]["status"] == "RUNNING":
                return
            await asyncio.sleep(0.02)


def test_ordinary_life_is_clean(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        first = await chat(here, "s", "hello")
        await chat(here, "s", "Why is checkout slow?")
        await here.client.post("/api/chat", {"sessionId": "s", "question": "please fail"})
        await here.client.stream("/api/chat_stream", {"sessionId": "s", "question": "hello again"})
        await here.client.stream("/api/ai_ops", {"sessionId": "ops"})
        for rating in ("useful", "not_useful", "useful"):
            assert (await here.client.rate("s", rating, runId=first)).status == 200
        await asyncio.gather(*(chat(here, f"many-{n % 5}", f"hello {n}") for n in range(50)))
        await chat(here, "gone", "hello")
        assert (await here.client.delete("/api/chat/session/gone")).status == 200
        await chat(here, "gone", "hello anew")
        waiting = asyncio.create_task(chat(here, "s", "please wait"))
        await started(here, "s")
        found = await verified(here)
        assert found.running == 1
        assert found.breaches == ()
        assert (found.runs, found.without_digest) == (57, 0)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting

    backend.run(scenario, Scripted(as_asked))

    async def afterwards() -> None:
        if backend.name != "memory":  # the run that waited was interrupted by the end of the service
            async with casenotes.open(backend.settings.database_url) as notes:
                found = await notes.verify()
                assert (found.runs, found.running, found.breaches) == (57, 0, ())

    asyncio.run(afterwards())


def test_run_that_was_ended_by_its_lease_is_sealed(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        start = here.service.recorder.start
        left = [await start("s", f"q{n}", casenotes.AgentFlow.CHAT) for n in range(3)]
        await chat(here, "s", "hello")
        assert (await verified(here)).running == 3
        clock = here.service.recorder.clock

        def later() -> datetime:
            return clock() + timedelta(hours=1)

        keeper = attrs.evolve(here.service.leases, recorder=attrs.evolve(here.service.recorder, clock=later))
        await keeper.tick()
        found = await verified(here)
        assert (found.runs, found.running, found.breaches) == (4, 0, ())
        for recording in left:
            run_id = recording.run.run_id
            trace = await here.client.trace("s", run_id)
            assert len(trace.data["run"]["digest"]) == 64

    backend.run(scenario)


def test_verifying_while_runs_are_written_raises_no_false_alarm(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        async def life(name: int) -> None:
            for n in range(6):
                run_id = await chat(here, f"s-{(name + n) % 3}", f"hello {n}")
                await here.client.rate(f"s-{(name + n) % 3}", runId=run_id)
                if n == 4:
                    await here.client.delete(f"/api/chat/session/s-{name % 3}")

        writers = [asyncio.create_task(life(name)) for name in range(6)]
        rounds = 0
        while not all(writer.done() for writer in writers):
            found = await verified(here)
            assert found.breaches == ()
            rounds += 1
            await asyncio.sleep(0)
        await asyncio.gather(*writers, return_exceptions=True)
        assert rounds > 1
        assert (await verified(here)).breaches == ()

    backend.run(scenario)


def test_trace_tells_the_digest_once_the_run_has_ended(backend: Backend) -> None:
    go_on = asyncio.Event()

    async def when_told(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        await go_on.wait()
        async for event in usual(enquiry):
            yield event

    async def scenario(here: Running) -> None:
        asked = asyncio.create_task(chat(here, "s", "hello"))
        await started(here, "s")
        assert (await here.client.trace("s")).data["run"]["digest"] is None
        go_on.set()
        run_id = await asked
        digest = (await here.client.trace("s", run_id)).data["run"]["digest"]
        assert len(digest) == 64 and set(digest) <= set("0123456789abcdef")
        if here.has_rows:
            stored = here.rows("SELECT digest FROM diagnosis_run WHERE run_id = ?", run_id)
            assert stored == [{"digest": digest}]

    backend.run(scenario, Scripted(when_told))


@pytest.fixture(params=["sqlite", "postgres"])
def old(request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresDatabases) -> Iterator[OldDatabase]:
    """An empty database of each kind."""
    if request.param == "sqlite":
        yield SqliteDatabase(tmp_path / "casenotes.db")
        return
    with postgres.empty() as url:
        yield PostgresDatabase(url)


OLD_RUN = {
    "run_id": "run-old",
    "session_id": "s-old",
    "query": "q",
    "status": "SUCCESS",
    "answer": "a",
    "agent_flow": "CHAT",
    "created_at": "2025-06-01 00:00:00.000000",
    "updated_at": "2025-06-01 00:00:01.000000",
    "finished_at": "2025-06-01 00:00:01.000000",
}


def test_runs_from_before_digests_are_told_apart(
    old: OldDatabase, cli_at: Callable[[str], CommandLine]
) -> None:
    old.make_historical()
    asyncio.run(upgrade(old.url, "0004"))
    moment = OLD_RUN["created_at"]
    chat_row = {"session_id": "s-old", "status": "ACTIVE", "message_pair_count": 1}
    old.insert("chat_session", **chat_row, created_at=moment, last_active_at=moment)
    old.insert("diagnosis_run", **OLD_RUN)
    asyncio.run(upgrade(old.url))

    async def go_on() -> str:
        async with casenotes.open(old.url) as notes:
            async with notes.run("a new question", session="s-old") as run:
                run.answer("a new answer")
            trace = await notes.trace("s-old", "run-old")
            assert trace.run is not None and trace.run.digest is None
            await notes.feedback("s-old", "useful", run_id="run-old")
            await notes.feedback("checkout-slow", "useful")
        return run.run_id

    new = asyncio.run(go_on())
    cli = cli_at(old.url)
    told = cli("verify", "--json")
    assert (told.status, told.json["breaches"]) == (0, [])
    assert told.json["runs"] == told.json["withoutDigest"] + 1
    assert "1 from before there were digests" in cli("verify", "s-old").out

    old.insert(
        "diagnosis_run", **OLD_RUN | {"run_id": "run-late", "created_at": "2098-01-01 00:00:00.000000"}
    )
    old.insert("diagnosis_run", **OLD_RUN | {"run_id": "run-legacy-" + session_digest("s-old")[:32]})
    told = cli("verify", "s-old", "--json")
    found = {(one["kind"], one["runId"]) for one in told.json["breaches"]}
    assert told.status == 1
    assert ("added", "run-late") in found
    assert new not in {run_id for _, run_id in found}


def test_old_system_that_goes_on_writing_is_no_breach(
    old: OldDatabase, cli_at: Callable[[str], CommandLine]
) -> None:
    old.make_historical()
    asyncio.run(upgrade(old.url))
    now = f"{datetime.now(UTC) + timedelta(minutes=1):%Y-%m-%d %H:%M:%S.%f}"
    old.insert_session("late", query="q", answer="a", created_at=now, updated_at=now)
    old.insert_step("late", step_number=1, created_at=now)
    asyncio.run(upgrade(old.url))
    cli = cli_at(old.url)
    assert cli("verify").status == 0, cli("verify").out
    assert cli("verify", "late").out.startswith(
        "verified 1 session, 1 run (1 from before there were digests)"
    )
