"""The nginx configuration that ships, before two replicas: streams come as they are made, the dead are passed over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen
from support.http import client_of
from support.nginx import nginx_before
from support.process import Process, service_process


@frozen
class Fleet:
    """Two replicas on one ledger, and the address before them."""

    replicas: tuple[Process, Process]
    url: str


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    database = f"sqlite+aiosqlite:///{tmp_path / 'shared.db'}"
    context = f"sqlite:///{tmp_path / 'shared-context.db'}"
    folders = [tmp_path / name for name in ("one", "two", "nginx")]
    for folder in folders:
        folder.mkdir()
    with (
        service_process(folders[0], database_url=database, context_url=context) as one,
        service_process(folders[1], database_url=database, context_url=context) as two,
        nginx_before([one.url, two.url], folders[2]) as url,
    ):
        yield Fleet((one, two), url)


def test_an_event_of_a_stream_arrives_while_the_run_goes_on(fleet: Fleet) -> None:
    async def scene() -> None:
        async with client_of(fleet.url) as client, client.streaming("/api/ai_ops", {}) as (reply, events):
            assert reply.headers["Content-Type"] == "text/event-stream; charset=utf-8"
            assert "Content-Encoding" not in reply.headers
            first, second = await anext(events), await anext(events)
            assert (first.type, second.payload) == ("metadata", "waiting")
            # Only now may the run go on: what came before cannot have waited for its end.
            for replica in fleet.replicas:
                replica.let_runs_end()
            rest = [event async for event in events]
            assert "".join(e.payload for e in rest if e.type == "content") == "found [T1]\n"
            assert rest[-1].type == "done"

    asyncio.run(scene())


def test_a_chat_and_its_trace_are_answered_by_whichever_replica(fleet: Fleet) -> None:
    async def scene() -> None:
        for replica in fleet.replicas:
            replica.let_runs_end()
        async with client_of(fleet.url) as client:
            for _ in range(4):
                answer = (await client.post("/api/chat", {"sessionId": "s-1", "question": "x"})).data
                trace = (await client.trace("s-1", answer["runId"])).data
                assert trace["runId"] == answer["runId"]
            assert len((await client.get("/api/chat/session/s-1/runs")).data) == 4

    asyncio.run(scene())


def test_an_encoded_id_reaches_the_service_as_it_was_sent(fleet: Fleet) -> None:
    async def scene() -> None:
        async with client_of(fleet.url) as client:
            reply = await client.get("/api/diagnosis/a%2Fb%25%23/trace")
            assert reply.status == 404
            assert "a/b%#" in reply.message

    asyncio.run(scene())


def test_a_replica_that_is_gone_is_passed_over(fleet: Fleet) -> None:
    async def scene() -> None:
        fleet.replicas[0].kill()
        fleet.replicas[1].let_runs_end()
        async with client_of(fleet.url) as client:
            for number in range(4):
                reply = await client.post("/api/chat", {"sessionId": "s-1", "question": f"{number}"})
                assert reply.data["status"] == "SUCCESS"

    asyncio.run(scene())
