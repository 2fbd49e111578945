"""A client of the service for tests: every answer is held to the envelope and to the contract."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from aiohttp import ClientResponse, ClientSession, ClientTimeout
from attrs import frozen
from multidict import CIMultiDictProxy
from support.agreed import check_answer, check_stream_event
from support.sse import Event, EventReader
from yarl import URL

JSON = "application/json"
PATIENCE = ClientTimeout(total=60)


@frozen
class Reply:
    """A whole answer."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value

    @property
    def data(self) -> Any:
        return self.json["data"]

    @property
    def message(self) -> str:
        text = self.json["message"]
        assert isinstance(text, str)
        return text


@frozen
class Client:
    """Speaks to the service at ``url``. Paths are sent as they are given: already encoded."""

    url: str
    http: ClientSession

    async def get(self, path: str, **headers: str) -> Reply:
        return await self.send("GET", path, headers=headers)

    async def delete(self, path: str) -> Reply:
        return await self.send("DELETE", path)

    async def post(
        self, path: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> Reply:
        raw = None if body is None else json.dumps(body).encode()
        return await self.send("POST", path, raw, headers={"Content-Type": JSON, **(headers or {})})

    async def send(
        self, method: str, path: str, raw: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> Reply:
        url = URL(self.url + path, encoded=True)
        if isinstance(raw, bytes):
            raw = io.BytesIO(raw)
        async with self.http.request(method, url, data=raw, headers=headers, timeout=PATIENCE) as response:
            reply = Reply(response.status, response.headers, await response.read())
        self._hold_to_contract(method, path, response, reply)
        return reply

    def _hold_to_contract(self, method: str, path: str, response: ClientResponse, reply: Reply) -> None:
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        if not path.startswith("/api/") or path == "/api/openapi.json" or method == "HEAD":
            return
        assert response.content_type == JSON, reply.body[:200]
        assert list(reply.json) == ["code", "message", "data"]
        assert reply.json["code"] == reply.status
        check_answer(method, path, reply.status, response.content_type, reply.json)

    async def ask(self, question: str, session_id: str | None = None, **more: object) -> dict[str, Any]:
        """Ask by ``/api/chat``; gives ``data``."""
        reply = await self.post("/api/chat", {"sessionId": session_id, "question": question, **more})
        assert reply.status == 200, reply.body
        assert isinstance(reply.data, dict)
        return reply.data

    async def trace(self, session_id: str, run_id: str | None = None) -> Reply:
        query = "" if run_id is None else f"?runId={quote(run_id, safe='')}"
        return await self.get(f"/api/diagnosis/{quote(session_id, safe='')}/trace{query}")

    async def runs(self, session_id: str, query: str = "") -> Reply:
        return await self.get(f"/api/chat/session/{quote(session_id, safe='')}/runs{query}")

    async def rate(self, session_id: str, feedback: str = "useful", **more: object) -> Reply:
        return await self.post("/api/feedback", {"sessionId": session_id, "feedback": feedback, **more})

    @asynccontextmanager
    async def streaming(
        self, path: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[tuple[ClientResponse, AsyncIterator[Event]]]:
        """The response and its events, as they come."""
        url = URL(self.url + path, encoded=True)
        async with self.http.post(url, json=body, headers=headers, timeout=PATIENCE) as response:
            assert response.status == 200, await response.read()
            yield response, _events(response, EventReader())

    async def stream(
        self, path: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> list[Event]:
        """All events of a stream."""
        async with self.streaming(path, body, headers=headers) as (_, events):
            return [event async for event in events]


async def _events(response: ClientResponse, reader: EventReader) -> AsyncIterator[Event]:
    async for piece in response.content.iter_any():
        for event in reader.feed(piece):
            assert event.name == "message"
            assert list(event.object) == ["type", "data"]
            check_stream_event(event.object)
            yield event


@asynccontextmanager
async def client_of(url: str, *, key: str | None = None) -> AsyncIterator[Client]:
    """A client for this address, with an API key if one is given."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with ClientSession(headers=headers) as http:
        yield Client(url, http)
