"""The demo's client: it takes the service at its word, and says in a sentence where it was not kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

import aiohttp
from attrs import frozen

from casenotes.core.errors import CasenotesError
from casenotes.core.text import clean
from casenotes.entrypoints.demo.sse import MalformedStream, ServerSentEvent, read_events

Data: TypeAlias = Any
"""Parsed JSON whose shape the caller checks as it goes."""

_NO_LIMIT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=600)
"""A diagnosis may take minutes; the service's own run time-out ends it."""


class PromiseBroken(CasenotesError):
    """The service did not do what its contract says; the message says what."""


class ServiceUnreachable(CasenotesError):
    """Nobody answers there, or not to this caller."""


def promise(kept: bool, broken: str) -> None:
    """Raise ``PromiseBroken`` with this sentence unless the promise was kept."""
    if not kept:
        raise PromiseBroken(broken)


@frozen
class Api:
    """The service's HTTP interface. Every method raises ``ServiceUnreachable`` and ``PromiseBroken``."""

    base: str
    _http: aiohttp.ClientSession

    async def get(self, path: str, query: Mapping[str, str] | None = None, *, status: int = 200) -> Data:
        """The ``data`` of the answer to a GET; ``status`` is the one that is due."""
        return await self._ask("GET", path + (f"?{urlencode(query)}" if query else ""), None, status)

    async def post(self, path: str, body: Mapping[str, object]) -> Data:
        """The ``data`` of the answer to a POST."""
        return await self._ask("POST", path, body, 200)

    async def stream(self, path: str) -> AsyncIterator[ServerSentEvent]:
        """The events of the answer to a POST without a body, as they come."""
        where = f"POST {path}"
        async with self._asked("POST", path, None) as response:
            promise(response.status == 200, f"{where} was answered {response.status} instead of 200")
            promise(response.content_type == "text/event-stream", f"{where} is no stream of events")
            try:
                async for event in read_events(response.content.iter_any()):
                    yield event
            except MalformedStream as error:
                raise PromiseBroken(f"{where}: {error}") from None

    @property
    def shown(self) -> str:
        """The service's address as it may be shown."""
        return clean(self.base)

    def page(self, session_id: str, run_id: str) -> str:
        """The address of the page that shows a run."""
        return f"{self.shown}/trace?{urlencode({'sessionId': session_id, 'runId': run_id}, quote_via=quote)}"

    async def _ask(self, method: str, path: str, body: Mapping[str, object] | None, due: int) -> Data:
        async with self._asked(method, path, body) as response:
            where = f"{method} {path}"
            text = await response.text()
            promise(response.status == due, f"{where} was answered {response.status} instead of {due}")
        try:
            envelope = json.loads(text)
        except ValueError:
            raise PromiseBroken(f"{where} was answered with something that is not JSON") from None
        promise(
            isinstance(envelope, dict) and list(envelope) == ["code", "message", "data"],
            f"{where} has an answer without code, message and data",
        )
        promise(envelope["code"] == due, f"{where} says code {envelope['code']!r} under HTTP status {due}")
        return envelope["data"]

    @asynccontextmanager
    async def _asked(
        self, method: str, path: str, body: Mapping[str, object] | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._http.request(method, self.base + path, json=body) as response:
                if response.status == 401:
                    raise ServiceUnreachable(
                        f"{self.shown} wants an API key: set CASENOTES_API_KEYS to one of its keys"
                    )
                yield response
        except aiohttp.InvalidURL:
            raise ServiceUnreachable(f"not the URL of a service: {self.shown}") from None
        except aiohttp.ClientPayloadError:
            raise PromiseBroken(f"{method} {path}: the answer broke off") from None
        except (aiohttp.ClientError, TimeoutError):
            raise ServiceUnreachable(
                f"nobody answers at {self.shown}: start a service there with casenotes serve, or leave --url out"
            ) from None


@asynccontextmanager
async def api_at(url: str, key: str | None) -> AsyncIterator[Api]:
    """The interface of the service at this URL; ``key`` is sent as the bearer's."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(headers=headers, timeout=_NO_LIMIT) as http:
        yield Api(url.rstrip("/"), http)
