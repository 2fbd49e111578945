"""What clients that are slow, many, or no HTTP clients at all can do."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import zlib

import pytest
from support.http import JSON
from support.raw import RawAnswer, say, wire_to
from support.service import Backend, Running

from casenotes.entrypoints.http import bodies, connections

HEAD = f"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\n".encode()


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 99\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"]
)
def test_a_body_that_does_not_come_is_not_waited_for(
    memory: Backend, monkeypatch: pytest.MonkeyPatch, framing: bytes
) -> None:
    async def scenario(here: Running) -> None:
        async with wire_to(here.client.url) as wire:
            await wire.send(HEAD + framing)
            async with asyncio.timeout(30):
                head = await wire.reader.readuntil(b"\r\n\r\n")
                answer = RawAnswer.of(head)
                body = await wire.reader.readexactly(int(answer.headers["content-length"]))
            assert answer.status == 400
            assert json.loads(body)["message"] == "body: must arrive within 0.05 s"
        assert (await here.client.get("/api/sessions")).data == []

    monkeypatch.setattr(bodies, "READ_SECONDS", 0.05)
    memory.run(scenario)


@pytest.mark.parametrize(
    "said", [b"", b"GET /api/sess", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n"]
)
def test_a_head_that_does_not_come_ends_the_connection(
    memory: Backend, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    """However the rest is dribbled: only a whole head counts."""

    async def scenario(here: Running) -> None:
        async with wire_to(here.client.url) as wire:
            await wire.send(said)
            dribbling = asyncio.create_task(_dribble(wire.writer))
            assert await wire.end() == b""
            dribbling.cancel()
            await asyncio.gather(dribbling, return_exceptions=True)

    async def _dribble(writer: asyncio.StreamWriter) -> None:
        while said:
            writer.write(b"a" if b"X-A" not in said else b"X: y\r\n")
            await asyncio.sleep(0.05)

    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.3)
    memory.run(scenario)


def test_an_idle_connection_is_closed_after_an_answer_too(
    memory: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(here: Running) -> None:
        async with wire_to(here.client.url) as wire:
            await wire.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /heal")
            assert (await wire.end()).count(b"HTTP/1.1 200") == 1

    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.2)
    memory.run(scenario)


def test_a_reader_that_takes_nothing_is_cut_off(memory: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks for far more than fits between the two, reads nothing, and finds its connection gone."""

    async def scenario(here: Running) -> None:
        loop = asyncio.get_running_loop()
        with socket.socket() as stalled:
            stalled.setblocking(False)
            await loop.sock_connect(stalled, ("127.0.0.1", int(here.client.url.rpartition(":")[2])))
            await loop.sock_sendall(
                stalled, b"GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 400
            )
            with pytest.raises(ConnectionError):
                for _ in range(600):
                    await loop.sock_sendall(stalled, b"\r\n")
                    await asyncio.sleep(0.05)
        assert (await here.client.get("/healthz")).status == 200

    monkeypatch.setattr(connections, "STALL_SECONDS", 0.3)
    memory.run(scenario)


def test_connections_beyond_the_limit_are_told_so_and_room_is_found_again(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        async with wire_to(here.client.url) as one, wire_to(here.client.url) as two:
            for wire in (one, two):
                await wire.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert (await wire.reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
            async with wire_to(here.client.url) as three:
                answer = RawAnswer.of(await three.end())
            assert answer.status == 503 and int(answer.headers["retry-after"]) >= 1
            assert json.loads(answer.body)["code"] == 503
            assert answer.headers["x-content-type-options"] == "nosniff"
        tries = 0
        while (await _try(here)) != 200:
            tries += 1
            assert tries < 1000

    async def _try(here: Running) -> int:
        async with wire_to(here.client.url) as wire:
            await wire.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return RawAnswer.of(await wire.end()).status

    memory.run(scenario, max_connections=2)


MALFORMED = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization : Bearer hunter2hunter2\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Secret: hunter2\x00\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"hunter2" * 2000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: hunter2\r\n" * 500 + b"\r\n",
    b"GET /hunter2\x1b[31m HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: hunter2\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: hunter2\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    b"\x16\x03\x01\x02\x00\x01hunter2\r\n\r\n",
)


@pytest.mark.parametrize("raw", MALFORMED)
def test_what_is_no_http_is_refused_in_the_envelope_and_not_repeated(
    memory: Backend, capsys: pytest.CaptureFixture[str], raw: bytes
) -> None:
    async def scenario(here: Running) -> None:
        answer = await say(here.client.url, raw)
        assert answer.status == 400
        assert json.loads(answer.body)["code"] == 400
        assert answer.headers["server"] == "casenotes"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert b"hunter2" not in answer.body

    memory.run(scenario)
    logged = capsys.readouterr()
    assert "hunter2" not in logged.out + logged.err and "Traceback" not in logged.out + logged.err


def test_an_expectation_that_cannot_be_met_is_refused_in_the_envelope(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        for path in (b"/api/sessions", b"/nothing"):
            raw = b"GET %s HTTP/1.1\r\nHost: localhost\r\nExpect: wonders\r\nConnection: close\r\n\r\n" % path
            answer = await say(here.client.url, raw)
            assert answer.status == 417 and json.loads(answer.body)["code"] == 417
            assert answer.headers["x-content-type-options"] == "nosniff"

    memory.run(scenario)


def test_a_small_body_that_swells_is_over_the_limit(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        bomb = packer.compress(b'{"question": "' + b"x" * 8 * bodies.LIMIT_BYTES) + packer.flush()
        headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
        reply = await here.client.send("POST", "/api/chat", io.BytesIO(bomb), headers=headers)
        assert reply.status == 413

    memory.run(scenario)
