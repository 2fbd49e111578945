"""A server that evidence is read from: one session of connections, and every failure in words that may be shown."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout
from attrs import frozen
from yarl import URL

from casenotes.core.text import Json, JsonObject, clean, fold

Fields: TypeAlias = Sequence[tuple[str, str]]
"""Names and values of a query string or a form; a name may stand there more than once."""

TIMEOUT = 10.0
"""Seconds one request may take in all."""

MAX_BYTES = 16 * 1024 * 1024
"""What is read of one answer at the most; a larger one is refused, since half a JSON text says nothing."""

_MAX_SAID = 200


@frozen
class Unanswered(Exception):
    """A server gave no answer that can be used. ``words`` are safe to show: no address, no credentials."""

    words: str


class Upstream:
    """Asks one server by HTTP. Credentials in its URL are sent as Basic authorization, and shown nowhere.

    The session is opened by the first request and closed by ``close``. Redirects are not followed: a server that
    answers with its login page gives no evidence.
    """

    def __init__(self, name: str, url: str, timeout: float = TIMEOUT) -> None:
        given = URL(url)
        self.name = name
        self._base = given.with_user(None)
        self._headers = _authorization(given)
        self._timeout = timeout
        self._session: ClientSession | None = None

    async def get(self, path: str, fields: Fields = ()) -> JsonObject | list[Json]:
        """The JSON that the server answers with. Raises ``Unanswered``."""
        return await self._ask("GET", path, params=list(fields))

    async def post(self, path: str, form: Fields) -> JsonObject | list[Json]:
        """As ``get``, with the fields as a form: a query may be longer than an address can be."""
        return await self._ask("POST", path, data=list(form))

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(self, method: str, path: str, **sent: object) -> JsonObject | list[Json]:
        if self._session is None:
            self._session = ClientSession(headers=self._headers, timeout=ClientTimeout(total=self._timeout))
        url = self._base / path.lstrip("/")
        try:
            async with self._session.request(method, url, allow_redirects=False, **sent) as response:  # type: ignore[arg-type]
                return self._read(response, await _body(response))
        except TimeoutError:
            raise Unanswered(f"{self.name} did not answer within {self._timeout:g} s") from None
        except _TooLarge:
            raise Unanswered(f"{self.name} answered with more than {MAX_BYTES // 2**20} MiB") from None
        except (ClientError, OSError, asyncio.IncompleteReadError):
            # the error's own words hold the address
            raise Unanswered(f"{self.name} could not be reached") from None

    def _read(self, response: ClientResponse, body: bytes) -> JsonObject | list[Json]:
        status = response.status
        try:
            value = cast(Json, json.loads(body))
        except (ValueError, RecursionError):
            value = None
        if 300 <= status < 400:
            raise Unanswered(f"{self.name} answered {status}: it sends elsewhere, to a login perhaps")
        if status in (401, 403):
            raise Unanswered(f"{self.name} answered {status}: it refuses these credentials")
        if status >= 400:
            said = _said(value)
            raise Unanswered(f"{self.name} answered {status}" + (f": {said}" if said else ""))
        if not isinstance(value, dict | list):
            kind = fold(clean(response.content_type), 40)
            raise Unanswered(f"{self.name} answered {status} with {kind} that is no JSON")
        return value


class _TooLarge(Exception):
    pass


def _authorization(url: URL) -> dict[str, str]:
    if url.user is None:
        return {}
    pair = f"{url.user}:{url.password or ''}".encode()
    return {"Authorization": f"Basic {b64encode(pair).decode('ascii')}"}


async def _body(response: ClientResponse) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > MAX_BYTES:
            raise _TooLarge
        pieces.append(piece)
    return b"".join(pieces)


def _said(value: Json) -> str:
    """What a server that speaks JSON says of its error; Loki and proxies that answer text are not quoted."""
    if not isinstance(value, Mapping):
        return ""
    kind, error = value.get("errorType"), value.get("error", value.get("message"))
    parts = [part for part in (kind, error) if isinstance(part, str) and part]
    return fold(clean(": ".join(parts)), _MAX_SAID)


def data_of(answer: JsonObject | list[Json], name: str) -> Json:
    """The ``data`` of an answer in Prometheus' form. Raises ``Unanswered`` for ``status: error`` and other forms."""
    if not isinstance(answer, dict):
        raise Unanswered(f"{name} answered JSON of another form")
    if answer.get("status") == "error":
        raise Unanswered(f"{name} answered an error: {_said(answer) or 'it does not say which'}")
    if answer.get("status") != "success" or "data" not in answer:
        raise Unanswered(f"{name} answered JSON of another form")
    return answer["data"]


def warnings_of(answer: JsonObject | list[Json]) -> list[Json]:
    """What the server warns of, e.g. that only a part of its storage answered."""
    warned = answer.get("warnings") if isinstance(answer, dict) else None
    texts = warned if isinstance(warned, list) else []
    said: list[Json] = [fold(clean(text), _MAX_SAID) for text in texts if isinstance(text, str)]
    return said[:5]
