"""A proxy before PostgreSQL or Redis that cuts, silences or slows the wire, at a request of the test's choice."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

from attrs import define, field, frozen
from sqlalchemy.engine import make_url
from support.requests_on_wire import PostgresRequests, RedisRequests, Requests

TASK = "fault proxy"
"""The name of all tasks here, so that a test can tell them from those of what it tests."""

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Fault(StrEnum):
    CUT = "cut"
    """Every connection is reset, on both sides."""
    HALT = "halt"
    """Nothing passes, on no connection, old or new; when it is healed, what was held back passes after all."""
    DELAY = "delay"
    """Nothing passes for ``Blow.seconds``."""


class Side(StrEnum):
    BEFORE = "before"
    """The server gets nothing of the request."""
    WITHIN = "within"
    """The server gets the first half of the request's bytes."""
    AFTER = "after"
    """The server has done what was asked; the client does not hear of it."""


@frozen
class Blow:
    """What happens to the wire. A ``HALT`` or ``DELAY`` heals by itself after ``seconds``, unless that is ``None``."""

    fault: Fault
    side: Side = Side.BEFORE
    seconds: float | None = None

    def __str__(self) -> str:
        return f"{self.fault} {self.side}"


@define(eq=False)
class FaultProxy:
    """Passes on what is sent, request by request; those without a name meet no blow. ``url`` leads through it."""

    _reach: Callable[[], Awaitable[Streams]]
    _kind: type[Requests]
    url: str = field(default="", init=False)
    seen: list[str] = field(factory=list, init=False)
    """What was asked for, in order."""
    struck: list[str] = field(factory=list, init=False)
    """The requests that met a blow."""
    _planned: tuple[int, str, Blow] | None = field(default=None, init=False)
    _open: asyncio.Event = field(factory=asyncio.Event, init=False)
    _ends: set[asyncio.StreamWriter] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self._open.set()

    def strike(self, blow: Blow, *, nth: int = 0, containing: str = "") -> None:
        """Plan one blow, in place of any other planned: at the ``nth`` request from now, counted from 0, of those
        whose SQL or command contains the text."""
        self._planned = nth, containing, blow

    def cut(self) -> None:
        """Reset all connections now."""
        for end in self._ends:
            if end.is_closing():
                continue
            end.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
            end.transport.abort()
        self._ends.clear()

    def halt(self) -> None:
        """Let nothing through from now on."""
        self._open.clear()

    def heal(self) -> None:
        """Let everything through, and forget what was planned."""
        self._planned = None
        self._open.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        await self._open.wait()
        far_reader, far_writer = await self._reach()
        self._ends.add(far_writer)
        answered = asyncio.Event()
        pumps = [
            asyncio.create_task(self._ask(reader, far_writer, answered), name=TASK),
            asyncio.create_task(self._answer(far_reader, writer, answered), name=TASK),
        ]
        try:
            await asyncio.gather(*pumps)
        finally:
            for pump in pumps:
                pump.cancel()
            for end in (writer, far_writer):
                self._ends.discard(end)
                end.close()

    async def _ask(
        self, client: asyncio.StreamReader, server: asyncio.StreamWriter, answered: asyncio.Event
    ) -> None:
        requests = self._kind()
        with suppress(ConnectionError):
            while data := await client.read(65536):
                for raw, name in requests.feed(data):
                    await self._open.wait()
                    blow = self._due(name)
                    if blow is None:
                        server.write(raw)
                    else:
                        await self._meet(blow, raw, server, answered)
                await server.drain()
            await self._open.wait()
            server.write(requests.unfinished)
        server.close()

    async def _answer(
        self, server: asyncio.StreamReader, client: asyncio.StreamWriter, answered: asyncio.Event
    ) -> None:
        with suppress(ConnectionError):
            while data := await server.read(65536):
                answered.set()
                await asyncio.sleep(0)  # a blow that waited for this answer comes before it
                await self._open.wait()
                client.write(data)
                await client.drain()
        client.close()

    async def _meet(
        self, blow: Blow, raw: bytes, server: asyncio.StreamWriter, answered: asyncio.Event
    ) -> None:
        sent = {Side.BEFORE: 0, Side.WITHIN: len(raw) // 2, Side.AFTER: len(raw)}[blow.side]
        answered.clear()
        server.write(raw[:sent])
        await server.drain()
        if blow.side is Side.AFTER:
            await answered.wait()
        if blow.fault is Fault.CUT:
            self.cut()
            raise ConnectionResetError
        self.halt()
        if blow.seconds is not None:
            asyncio.get_running_loop().call_later(blow.seconds, self._open.set)
        await self._open.wait()
        server.write(raw[sent:])

    def _due(self, name: str) -> Blow | None:
        if not name:
            return None
        self.seen.append(name)
        if self._planned is None:
            return None
        nth, containing, blow = self._planned
        if containing not in name:
            return None
        if nth > 0:
            self._planned = nth - 1, containing, blow
            return None
        self._planned = None
        self.struck.append(name)
        return blow


@asynccontextmanager
async def before_postgres(url: str) -> AsyncIterator[FaultProxy]:
    """A proxy before the PostgreSQL of this URL."""
    target = make_url(url)
    host = str(target.host or target.query["host"])
    port = int(target.port or str(target.query.get("port", 5432)))

    async def reach() -> Streams:
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)

    async with _listening(FaultProxy(reach, PostgresRequests)) as (proxy, at):
        through = target.difference_update_query(["host", "port", "sslmode"]).set(host="127.0.0.1", port=at)
        proxy.url = through.update_query_dict({"sslmode": "disable"}).render_as_string(hide_password=False)
        yield proxy


@asynccontextmanager
async def before_redis(url: str) -> AsyncIterator[FaultProxy]:
    """A proxy before the Redis of this URL."""
    parts = urlsplit(url)
    database = parse_qs(parts.query).get("db", [parts.path.strip("/") if parts.scheme == "redis" else "0"])[0]

    async def reach() -> Streams:
        if parts.scheme == "unix":
            return await asyncio.open_unix_connection(parts.path)
        return await asyncio.open_connection(parts.hostname, parts.port or 6379)

    async with _listening(FaultProxy(reach, RedisRequests)) as (proxy, at):
        password = f":{parts.password}@" if parts.password else ""
        proxy.url = f"redis://{password}127.0.0.1:{at}/{database or 0}"
        yield proxy


@asynccontextmanager
async def _listening(proxy: FaultProxy) -> AsyncIterator[tuple[FaultProxy, int]]:
    tasks = set[asyncio.Task[None]]()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(proxy.serve(reader, writer), name=TASK)
        tasks.add(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield proxy, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        proxy.cut()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
