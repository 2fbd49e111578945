"""The readers of a stream: the tests' own, by the letter of the standard; the demo's; and the page's."""

from __future__ import annotations

import asyncio
import json
import subprocess
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import playwright
from attrs import frozen
from support.sse import EventReader

from casenotes.entrypoints.demo.sse import read_events
from casenotes.entrypoints.http.pages import FOLDER

NODE = Path(playwright.__file__).parent / "driver" / "node"
PROGRAM = Path(__file__).with_name("page_reader.mjs")


def by_the_letter(pieces: Sequence[bytes]) -> list[Any]:
    reader = EventReader()
    return [event.object for piece in pieces for event in reader.feed(piece)]


def by_the_demo(pieces: Sequence[bytes]) -> list[Any]:
    async def come() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def read() -> list[Any]:
        return [json.loads(event.data) async for event in read_events(come())]

    return asyncio.run(read())


@frozen
class Page:
    """The page's script, run by the JavaScript engine that comes with the driver of the browser tests."""

    process: subprocess.Popen[str]

    def read(self, pieces: Sequence[bytes]) -> list[Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([b64encode(piece).decode() for piece in pieces]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the page's script gave up"
        events = json.loads(line)
        assert isinstance(events, list)
        return events


@contextmanager
def page() -> Iterator[Page]:
    """The page's script, for the length of the block."""
    command = [NODE, PROGRAM, FOLDER / "api.js"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        try:
            yield Page(process)
        finally:
            process.kill()
