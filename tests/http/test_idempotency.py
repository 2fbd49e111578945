from __future__ import annotations

import asyncio

import pytest
from support.scripted import Gate, Scripted, raising, usual
from support.service import Backend, Running
from support.sse import answer_in

KEY = {"Idempotency-Key": "k-1"}


def test_a_repeat_returns_the_first_answer_and_makes_no_second_run(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        first = await here.client.post("/api/chat", {"question": "q"}, headers=KEY)
        again = await here.client.post("/api/chat", {"question": "q", "sessionId": None}, headers=KEY)
        assert again.status == 200 and again.data == first.data
        assert len(asked.enquiries) == 1
        assert (await here.client.get(f"/api/chat/session/{first.data['sessionId']}")).data[
            "messagePairCount"
        ] == 1

    asked = Scripted(usual)
    backend.run(scenario, asked)


@pytest.mark.parametrize("path", ["/api/chat_stream", "/api/ai_ops"])
def test_a_repeated_stream_is_told_again(backend: Backend, path: str) -> None:
    async def scenario(here: Running) -> None:
        body = {"question": "q"} if path == "/api/chat_stream" else {}
        first = await here.client.stream(path, body, headers=KEY)
        again = await here.client.stream(path, body, headers=KEY)
        assert again[0] == first[0] and answer_in(again) == answer_in(first)
        assert [event.type for event in again] == ["metadata", "content", "done"]
        assert len(asked.enquiries) == 1

    asked = Scripted(usual)
    backend.run(scenario, asked)


def test_a_failed_run_is_told_again_as_failed(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        first = await here.client.post("/api/chat", {"question": "q"}, headers=KEY)
        again = await here.client.post("/api/chat", {"question": "q"}, headers=KEY)
        assert first.data["success"] is False and again.data == first.data
        events = await here.client.stream("/api/chat_stream", {"question": "q"}, headers=KEY)
        assert [event.type for event in events] == ["metadata", "error"]

    backend.run(scenario, Scripted(raising(ValueError("x"))))


def test_another_request_with_the_key_is_refused(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.post("/api/chat", {"question": "q"}, headers=KEY)
        for path, body in (
            ("/api/chat", {"question": "other"}),
            ("/api/chat", {"question": "q", "sessionId": "s-1"}),
            ("/api/chat", {"question": "q", "flow": "graph"}),
            ("/api/ai_ops", {}),
        ):
            assert (await here.client.post(path, body, headers=KEY)).status == 409

    backend.run(scenario)


def test_a_repeat_while_the_first_still_runs_is_refused(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        body = {"question": "q", "sessionId": "s-1"}
        first = asyncio.create_task(here.client.post("/api/chat", body, headers=KEY))
        await gate.reached.wait()
        assert (await here.client.post("/api/chat", body, headers=KEY)).status == 409
        gate.opened.set()
        assert (await first).data["success"] is True

    gate = Gate()
    backend.run(scenario, Scripted(gate))


def test_repeats_at_once_make_one_run(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        body = {"question": "q", "sessionId": "s-1"}
        replies = await asyncio.gather(*(here.client.post("/api/chat", body, headers=KEY) for _ in range(10)))
        assert {reply.status for reply in replies} <= {200, 409}
        assert len((await here.client.runs("s-1")).data) == 1

    backend.run(scenario)


@pytest.mark.parametrize("key", ["", "k" * 256, "ké"])
def test_a_key_of_another_shape_is_refused(memory: Backend, key: str) -> None:
    async def scenario(here: Running) -> None:
        reply = await here.client.post("/api/chat", {"question": "q"}, headers={"Idempotency-Key": key})
        assert reply.status == 400 and reply.message.startswith("Idempotency-Key: ")

    memory.run(scenario)


def test_an_erased_sessions_key_may_be_used_anew(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        body = {"question": "q", "sessionId": "s-1"}
        first = await here.client.post("/api/chat", body, headers=KEY)
        await here.client.delete("/api/chat/session/s-1")
        again = await here.client.post("/api/chat", body, headers=KEY)
        assert again.status == 200 and again.data["runId"] != first.data["runId"]

    backend.run(scenario)
