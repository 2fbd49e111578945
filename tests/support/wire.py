"""A wire between a client and a server of PostgreSQL, which can be cut, and can go dead without a word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from attrs import define, field
from sqlalchemy.engine import URL, make_url


@define
class Wire:
    """Passes on what is sent, unless it is dead. ``url`` leads through it."""

    target: URL
    url: str = field(default="", init=False)
    _alive: asyncio.Event = field(factory=asyncio.Event, init=False)
    _ends: set[asyncio.StreamWriter] = field(factory=set, init=False)

    def go_dead(self) -> None:
        """Keep all connections, take new ones, and let nothing through."""
        self._alive.clear()

    def come_alive(self) -> None:
        self._alive.set()

    def cut(self) -> None:
        """End all connections."""
        for end in self._ends:
            end.close()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        try:
            await self._alive.wait()
            far_reader, far_writer = await self._reach()
            self._ends.add(far_writer)
            await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))
        finally:
            writer.close()

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = str(self.target.host or self.target.query["host"]), self.target.port
        port = port or int(str(self.target.query.get("port", 5432)))
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                await self._alive.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def wire_to(url: str) -> AsyncIterator[Wire]:
    """A wire to the server of this URL, alive."""
    wire = Wire(make_url(url))
    wire.come_alive()
    tasks = set[asyncio.Task[None]]()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(wire.connect(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    address = wire.target.difference_update_query(["host", "port"]).set(host="127.0.0.1", port=port)
    wire.url = address.render_as_string(hide_password=False)
    try:
        yield wire
    finally:
        server.close()
        wire.cut()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
