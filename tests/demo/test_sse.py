"""The strict reader of server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casenotes.entrypoints.demo.sse import MalformedStream, ServerSentEvent, read_events

STREAM = 'event: message\ndata: {"a": "é — 文 \u2028"}\n\n: ping\n\ndata:one\ndata: two\nid: 7\nretry: 9\n\n'
EVENTS = [ServerSentEvent("message", '{"a": "é — 文 \u2028"}'), ServerSentEvent("message", "one\ntwo")]


def read(*chunks: bytes) -> list[ServerSentEvent]:
    async def come() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def scenario() -> list[ServerSentEvent]:
        return [event async for event in read_events(come())]

    return asyncio.run(scenario())


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_are_read_whatever_ends_their_lines(end: str) -> None:
    assert read(STREAM.replace("\n", end).encode()) == EVENTS


@given(st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(0, 120)))
def test_events_are_read_however_their_bytes_are_cut(end: str, cuts: list[int]) -> None:
    data = STREAM.replace("\n", end).encode()
    places = [0, *sorted(cuts), len(data)]
    assert read(*(data[a:b] for a, b in pairwise(places))) == EVENTS


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"data: \xff\n\n", "not UTF-8"),
        (b"data: half of it", "inside a line"),
        (b"data: \xe6\x96", "inside a line"),
        (b"data: a\n", "inside an event"),
        (b"event: message\n\n", "no data"),
        (b"dat: a\n\n", "no field"),
        (b'{"code": 200}\n\n', "no field"),
        (b" data: a\n\n", "no field"),
    ],
)
def test_what_is_no_well_formed_stream_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(MalformedStream, match=complaint):
        read(data)


def test_a_stream_of_nothing_has_no_event() -> None:
    assert read() == []
