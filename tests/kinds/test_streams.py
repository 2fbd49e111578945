"""Streams that come in odd pieces, and readers that do not read."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from aiohttp import web
from llm.asking import GOOD_PLAN, service
from support.model_server import MODEL
from support.scripted import Scripted, playing
from support.service import Backend, Running
from support.sse import answer_in

from casenotes.core.service.stream import Execution
from casenotes.core.words import AgentFlow
from casenotes.entrypoints.http import connections
from casenotes.ports.agent import Chunk

WORDS = "Die Platte ist voll \N{SNOWMAN}é\U0001f600\N{CJK UNIFIED IDEOGRAPH-4E2D} [T2]\u2028.\r\nEnde."


def raw_stream(text: str) -> bytes:
    """What a model's server sends for these words: characters as UTF-8, not escaped."""
    whole = b""
    for at in range(0, len(text), 3):
        choice: dict[str, Any] = {"index": 0, "delta": {"content": text[at : at + 3]}, "finish_reason": None}
        whole += _event([choice])
    whole += _event([{"index": 0, "delta": {}, "finish_reason": "stop"}])
    return whole + b"data: [DONE]\n\n"


def _event(choices: list[dict[str, Any]]) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices}
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()


@pytest.mark.parametrize("size", [1, 7])
def test_characters_cut_over_the_chunks_of_a_models_stream_arrive_whole(memory: Backend, size: int) -> None:
    async def play(request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        raw = raw_stream(WORDS)
        for at in range(0, len(raw), size):
            await response.write(raw[at : at + size])
            if at % 50 == 0:
                await asyncio.sleep(0)
        return response

    async def act() -> None:
        async with service(memory, GOOD_PLAN, play) as asking:
            for flow in (AgentFlow.CHAT, AgentFlow.AI_OPS):
                asked = await asking.ask(flow)
                assert WORDS in asked.answer and asked.answer == asked.trace["answer"]
                assert asked.run["degraded"] is False

    asyncio.run(act())


def test_characters_cut_over_the_chunks_of_a_request_are_read_whole(backend: Backend) -> None:
    raw = json.dumps({"sessionId": "s-1", "question": WORDS}, ensure_ascii=False).encode()

    async def scenario(here: Running) -> None:
        async def pieces() -> Any:
            for at in range(len(raw)):
                yield raw[at : at + 1]

        reply = await here.client.send(
            "POST",
            "/api/chat",
            pieces(),
            headers={"Content-Type": "application/json"},
        )
        assert reply.status == 200
        assert (await here.client.trace("s-1")).data["run"]["query"] == WORDS

    backend.run(scenario)


def test_halves_of_a_character_that_an_agent_tells_apart_break_no_stream(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        events = await here.client.stream("/api/ai_ops", {"sessionId": "s-1"})
        assert events[-1].type == "done"
        assert answer_in(events) == "a\ufffd\ufffdb\ufffd" == (await here.client.trace("s-1")).data["answer"]

    backend.run(scenario, Scripted(playing(Chunk("a\ud83d"), Chunk("\ude00b"), Chunk("\x00"))))


@contextmanager
def stalling(here: Running, path: str, body: object, **headers: str) -> Iterator[socket.socket]:
    """A client that sends a request, and takes in no more than its socket must."""
    raw = json.dumps(body).encode()
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", int(here.client.url.rpartition(":")[2])))
        client.sendall(
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{lines}"
            f"Content-Length: {len(raw)}\r\n\r\n".encode()
            + raw
        )
        yield client


def executions() -> set[int]:
    """The executions that somebody holds, of this test or an earlier one."""
    gc.collect()
    return {id(one) for one in gc.get_objects() if type(one) is Execution}


def received(client: socket.socket) -> bytes:
    """All that came, to the end of the connection."""
    client.settimeout(10)
    whole = b""
    with suppress(ConnectionError):
        while piece := client.recv(1 << 20):
            whole += piece
    return whole


def answering() -> int:
    """How many streams are being answered: each has a task that fills silence."""
    return sum("_ping" in repr(task.get_coro()) for task in asyncio.all_tasks())


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


def test_a_reader_that_stalls_is_let_go_and_holds_neither_run_nor_memory(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "STALL_SECONDS", 0.5)
    body = {"sessionId": "s-1", "question": "q", "flow": "chat"}

    async def scenario(here: Running) -> None:
        before = executions()
        with stalling(here, "/api/chat_stream", body, Idempotency_Key="k-1") as client:
            await until(lambda: answering() == 1)
            await here.quiet()
            assert (await here.client.trace("s-1")).data["run"]["status"] == "SUCCESS"
            await until(lambda: answering() == 0)
            assert executions() <= before
            assert b'"done"' not in received(client)
        monkeypatch.setattr(connections, "STALL_SECONDS", 30)
        again = await here.client.stream("/api/chat_stream", body, headers={"Idempotency-Key": "k-1"})
        assert again[-1].type == "done" and len(answer_in(again)) == 100 * 65537

    backend.run(scenario, Scripted(playing(*[Chunk("x" * 65536 + "\n")] * 100)))
