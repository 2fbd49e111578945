"""Whatever is told, in whatever pieces, arrives as it is stored, however the network cuts the bytes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from http.client import HTTPConnection
from itertools import pairwise
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from attrs import define
from fuzz import readers
from hypothesis import given, settings
from hypothesis import strategies as st
from support.background import in_background
from support.scripted import Scripted
from support.service import Backend

from casenotes.core.redaction import redact
from casenotes.ports.agent import AgentEvent, Answered, Chunk, Enquiry, Progress

Told: TypeAlias = "list[tuple[type[Chunk] | type[Progress], str]]"

SHARP = (
    *(
        "\r",
        "\n",
        "\r\n",
        "\n\n",
        "\r\r",
        "\x85",
        "\u2028",
        "\u2029",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x00",
        "\ufeff",
    ),
    *(
        "event: done\n",
        'data: {"type":"done","data":null}\n\n',
        ": ping\n\n",
        "id: 7\n",
        "retry: 0\n",
        "data:",
    ),
    *("\ud83d", "\ude00", "\U0001f600", "\N{SNOWMAN}", "e\u0301", "\\u0000", '"', "\\", "</script>"),
    *("[T", "1]", "password=", "hunter2 ", "Bearer "),
)
any_text = st.text(st.characters(exclude_categories=()), max_size=20)
texts = st.lists(st.sampled_from(SHARP) | any_text, max_size=6).map("".join)
tellings = st.lists(st.tuples(st.sampled_from([Chunk, Chunk, Chunk, Progress]), texts), max_size=8)


@define
class Telling:
    """A script that tells what it was last given."""

    told: Told

    async def __call__(self, _enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        for kind, text in self.told:
            yield kind(text)
        yield Answered()


@define
class Socket:
    """Asks the service over a socket of its own for each answer."""

    url: str

    def stream(self, path: str, key: str, most: int) -> bytes:
        """A whole stream, read at most so many bytes at a time."""
        body = {"sessionId": "s-1", "question": "what is firing"} if path != "/api/ai_ops" else {}
        raw = b"".join(self._ask("POST", path, most, body, {"Idempotency-Key": key}))
        assert raw.endswith(b"\n\n")
        return raw

    def answer(self, session_id: str, run_id: str) -> Any:
        """The answer that is stored."""
        path = f"/api/diagnosis/{session_id}/trace?runId={run_id}"
        return json.loads(b"".join(self._ask("GET", path, 65536)))["data"]["answer"]

    def _ask(
        self, method: str, path: str, most: int, body: object = None, headers: dict[str, str] | None = None
    ) -> list[bytes]:
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        try:
            known = {"Content-Type": "application/json", **(headers or {})}
            connection.request(method, path, None if body is None else json.dumps(body), known)
            with connection.getresponse() as response:
                assert response.status == 200
                return list(iter(lambda: response.read1(most), b""))
        finally:
            connection.close()


def cut(raw: bytes, places: list[float]) -> list[bytes]:
    """The bytes in pieces, cut at these shares of their length."""
    ends = [0, *sorted(round(place * len(raw)) for place in places), len(raw)]
    return [raw[a:b] for a, b in pairwise(ends)]


def settled(text: str) -> str:
    return "".join("\ufffd" if c == "\x00" or "\ud800" <= c <= "\udfff" else c for c in text)


def holds(backend: Backend, examples: int, *, derandomize: bool) -> None:
    script = Telling([])
    with in_background(backend, Scripted(script)) as service, readers.page() as page:
        socket = Socket(service.url)

        def read(raw: bytes, places: list[float]) -> list[Any]:
            """The events, about which all readers agree."""
            pieces = cut(raw, places)
            events = readers.by_the_letter(pieces)
            assert readers.by_the_demo(pieces) == events
            assert page.read(pieces) == events
            return events

        @settings(max_examples=examples, derandomize=derandomize, deadline=None)
        @given(
            tellings,
            st.sampled_from(["/api/chat_stream", "/api/ai_ops"]),
            st.integers(1, 4096),
            st.lists(st.floats(0, 1), max_size=12),
        )
        def arrives(told: Told, path: str, most: int, places: list[float]) -> None:
            script.told, key = told, str(uuid4())
            events = read(socket.stream(path, key, most), places)
            kinds = [event["type"] for event in events]
            assert kinds[0] == "metadata" and kinds[-1] == "done"
            assert set(kinds[1:-1]) <= {"content", "progress"}

            stored = socket.answer(events[0]["data"]["sessionId"], events[0]["data"]["runId"])
            assert text_of("content", events) == stored
            answer = settled("".join(text for kind, text in told if kind is Chunk))
            if redact(answer) == answer and "[T" not in answer:
                assert stored == answer
            notes = [settled(text) for kind, text in told if kind is Progress]
            if all(redact(note) == note for note in notes):
                assert [event["data"] for event in events if event["type"] == "progress"] == notes

            again = read(socket.stream(path, key, most), places)
            assert again[0] == events[0] and text_of("content", again) == stored and again[-1] == events[-1]

        arrives()


def text_of(kind: str, events: list[Any]) -> str:
    return "".join(event["data"] for event in events if event["type"] == kind)


def test_any_text_in_any_pieces_arrives_exactly_as_it_is_stored(backend: Backend) -> None:
    holds(backend, 40, derandomize=True)


@pytest.mark.long
def test_very_many_texts_arrive_exactly_as_they_are_stored(backend: Backend) -> None:
    holds(backend, 3000, derandomize=False)
