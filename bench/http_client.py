"""A client of HTTP/1.1 that costs next to nothing: what it is told is sent, and answers are read by their length."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from attrs import frozen

from bench.measuring import Spoilt

ROOT = Path(__file__).parent.parent


class Connections:
    """So many connections to a server, kept open; a request takes the next that is free."""

    def __init__(self) -> None:
        self._free: asyncio.LifoQueue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.LifoQueue()

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, number: int) -> AsyncIterator[Connections]:
        connections, opened = cls(), []
        try:
            for _ in range(number):
                opened.append(await connect(url))
                connections._free.put_nowait(opened[-1])
            yield connections
        finally:
            for _, writer in opened:
                writer.close()

    async def ask(self, request: bytes) -> bytes:
        """The body of the answer. Ends the benchmark when that is not 200."""
        reader, writer = await self._free.get()
        try:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            body = await reader.readexactly(int(length or 0))
        finally:
            self._free.put_nowait((reader, writer))
        if not head.startswith(b"HTTP/1.1 200 "):
            raise Spoilt(f"the service answered {head[:60]!r} {body[:200]!r}")
        return body


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(url)
    return await asyncio.open_connection(address.hostname, address.port)


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def post(path: str, body: Mapping[str, object] | bytes) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(content)}\r\n\r\n".encode() + content


@frozen
class Apart:
    """A service in a process of its own, and the bare application beside it."""

    product: str
    bare: str
    pid: int


@asynccontextmanager
async def service_apart(
    folder: Path, database_url: str, context_url: str, **settings: str
) -> AsyncIterator[Apart]:
    """Start ``bench.service_apart``; what it logs goes into a file in the folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CASENOTES_")}
    environment |= {"CASENOTES_DATABASE_URL": database_url, "CASENOTES_CONTEXT_URL": context_url, **settings}
    log = folder / "service.log"
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bench.service_apart",
            cwd=ROOT,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
        )
    assert process.stdin is not None and process.stdout is not None
    try:
        first = await process.stdout.readline()
        if not first:
            raise Spoilt(f"the service did not start:\n{log.read_text()}")
        yield Apart(**json.loads(first), pid=process.pid)
    finally:
        if process.returncode is None:
            process.kill()  # what it keeps is thrown away
        await process.wait()
