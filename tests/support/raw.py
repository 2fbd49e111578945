"""A client that sends what it is told to, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from attrs import frozen


@frozen
class RawAnswer:
    """A whole answer, its headers' names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @classmethod
    def of(cls, raw: bytes) -> RawAnswer:
        head, _, body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return cls(int(first.split()[1]), headers, body)


@frozen
class Wire:
    """One connection to the service."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def end(self) -> bytes:
        """All that the service says until it closes the connection."""
        async with asyncio.timeout(30):
            return await self.reader.read()


@asynccontextmanager
async def wire_to(url: str) -> AsyncIterator[Wire]:
    """A connection to the service at this URL."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def say(url: str, data: bytes) -> RawAnswer:
    """Send this, and read until the service closes the connection."""
    async with wire_to(url) as wire:
        await wire.send(data)
        return RawAnswer.of(await wire.end())
