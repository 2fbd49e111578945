"""A strict reader of server-sent events: what the standard leaves to the reader's grace is an error here."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterable, AsyncIterator

from attrs import frozen


class MalformedStream(Exception):
    """The bytes are no well-formed stream of events; the message says what is wrong, and is safe to show."""


@frozen
class ServerSentEvent:
    """One event. ``data`` holds its data lines, joined by line feeds."""

    name: str
    data: str


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[ServerSentEvent]:
    """The events of a stream, each as soon as the blank line that ends it has come, however the bytes are cut.

    Comments are passed over. Raises ``MalformedStream`` for bytes that are not UTF-8, for a field that is none of
    ``event``, ``data``, ``id``, ``retry``, and for a stream that ends inside an event.
    """
    name, data = "", list[str]()
    async for line in _lines(chunks):
        if not line:
            if data:
                yield ServerSentEvent(name or "message", "\n".join(data))
            elif name:
                raise MalformedStream(f"an event {name!r} has no data")
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        match field:
            case "event":
                name = value.removeprefix(" ")
            case "data":
                data.append(value.removeprefix(" "))
            case "" | "id" | "retry":
                pass
            case _:
                raise MalformedStream(f"a line is no field of an event: {field[:40]!r}")
    if name or data:
        raise MalformedStream("the stream ends inside an event")


async def _lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[str]:
    """The lines, without their ends: CR LF, LF or CR. What follows the last end is no line, and an error."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    text = ""
    async for chunk in chunks:
        try:
            text += decoder.decode(chunk)
        except UnicodeDecodeError:
            raise MalformedStream("the stream is not UTF-8") from None
        # A CR at the end may be the first half of a CR LF.
        held = text[-1:] if text.endswith("\r") else ""
        *whole, rest = text.removesuffix(held).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in whole:
            yield line
        text = rest + held
    line, end, _ = text.partition("\r")
    if decoder.getstate()[0] or (line and not end):
        raise MalformedStream("the stream ends inside a line")
    if end:
        yield line
