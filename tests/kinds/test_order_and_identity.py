"""Which run is the latest, and which run is meant: whatever the clocks on the wall, the ids, and what was erased."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from support.postgres import rows
from support.service import Backend, Running

ZONES = ("Pacific/Kiritimati", "America/Los_Angeles", "Asia/Kathmandu", "UTC")


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Sets ``TZ``; the process is where it was afterwards."""
    with monkeypatch.context() as patch:
        yield patch
    time.tzset()


def test_times_and_order_are_those_of_utc_wherever_processes_and_database_stand(
    backend: Backend, elsewhere: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    async def scenario(here: Running) -> None:
        before = datetime.now(UTC)
        made.append((await here.client.ask(f"q{len(made)}", "s-1"))["runId"])
        found = (await here.client.trace("s-1")).data
        assert found["runId"] == made[-1], "the latest is the one that was made last"
        after = datetime.now(UTC)
        for at in (found["run"]["createdAt"], found["run"]["finishedAt"], found["session"]["lastActiveAt"]):
            assert at.endswith("Z") and before <= datetime.fromisoformat(at) <= after
        expires = datetime.fromisoformat(found["session"]["expiresAt"])
        assert before + timedelta(days=1) <= expires <= after + timedelta(days=1)
        assert found["session"]["status"] == "ACTIVE"
        if here.has_rows:  # what is stored is the next process's to read
            listed = [row["runId"] for row in (await here.client.runs("s-1")).data]
            assert listed == made[::-1]

    for zone in ZONES:
        elsewhere.setenv("TZ", zone)
        time.tzset()
        if backend.name == "postgres":
            _set_timezone(backend, zone)
        backend.run(scenario)
        if backend.name == "memory":
            made.clear()


def _set_timezone(backend: Backend, zone: str) -> None:
    statement = f"do $$ begin execute format('alter database %I set timezone = ''{zone}''', current_database()); end $$"
    asyncio.run(rows(backend.settings.database_url, statement))


def test_an_erased_latest_run_is_nobodys_latest_and_its_id_no_place_in_a_list(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        kept = await here.client.ask("kept", "s-kept")
        gone = await here.client.ask("gone", "s-1")
        assert (await here.client.delete("/api/chat/session/s-1")).status == 200
        assert (await here.client.trace("s-1")).status == 404
        assert (await here.client.trace("s-1", gone["runId"])).status == 404
        assert (await here.client.rate("s-1")).status == 404
        assert (await here.client.rate("s-1", runId=gone["runId"])).status == 404
        anew = await here.client.ask("anew", "s-1")
        assert (await here.client.trace("s-1")).data["runId"] == anew["runId"] != gone["runId"]
        assert (await here.client.rate("s-1")).data["runId"] == anew["runId"]
        assert [row["runId"] for row in (await here.client.runs("s-1")).data] == [anew["runId"]]
        assert (await here.client.runs("s-1", f"?before={gone['runId']}")).status == 404
        assert (await here.client.trace("s-kept")).data["runId"] == kept["runId"]

    backend.run(scenario)


def test_a_run_id_is_compared_to_the_last_character(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = (await here.client.ask("q", "s-1"))["runId"]
        whole = (await here.client.trace("s-1", made)).body
        near = (
            made.upper(),
            f" {made}",
            f"{made} ",
            f"{made}\n",
            made[:-1],
            made + "é",
            made.replace("-", "%2D"),
            "%",
            "_" * len(made),
            "' or '1'='1",
            "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 600,
        )
        for other in near:
            for reply in (
                await here.client.trace("s-1", other),
                await here.client.runs("s-1", f"?before={quote(other, safe='')}"),
                await here.client.rate("s-1", runId=other),
            ):
                assert reply.status == 404, (other, reply.body)
        assert (await here.client.trace("s-1", made)).body == whole

    backend.run(scenario)


def test_a_run_id_that_a_client_sends_changes_no_run(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        first = (await here.client.ask("first", "s-1"))["runId"]
        before = (await here.client.trace("s-1", first)).data
        for session_id in ("s-1", "s-2", None):
            again = await here.client.ask("again", session_id, runId=first)
            assert again["runId"] != first
        events = await here.client.stream(
            "/api/chat_stream", {"sessionId": "s-1", "question": "again", "runId": first}
        )
        assert events[0].payload["runId"] != first
        after = (await here.client.trace("s-1", first)).data
        assert [after[part] for part in ("run", "answer", "agentSteps", "toolInvocations")] == [
            before[part] for part in ("run", "answer", "agentSteps", "toolInvocations")
        ]

    backend.run(scenario)
