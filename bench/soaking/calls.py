"""Calling the replicas as a real client does: when one does not answer, the other is asked, and asked again."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout
from attrs import define, field, frozen
from support.sse import Event, EventReader, answer_in

from bench.soaking.faults import Faulty

TRY_AGAIN = frozenset({409, 503})
"""The first request with this key is still running; the ledger, or for a clear the conversation store, is away."""

PATIENCE_SECONDS = 90.0
"""How long one request is tried at all."""

_ONE_ATTEMPT = ClientTimeout(total=40)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Cut(Exception):
    """A stream that ended before its end was told."""


@frozen
class Request:
    """One request of a kind that the report counts; it may be sent any number of times, to either replica."""

    kind: str
    method: str
    path: str
    body: Mapping[str, object] | None = None
    key: str | None = None
    streamed: bool = False


@frozen
class Answer:
    """The first answer that was not one to try again on, with its ``data``.

    ``first_sent`` is when the first attempt was sent and ``sent`` when the one that was answered was; monotonic
    seconds. ``uncertain``: an attempt before it got no answer, or a 503, and may have been carried out.
    """

    status: int
    data: Any
    first_sent: float
    sent: float
    received: float
    uncertain: bool


@define
class CallLog:
    """How all attempts went."""

    seconds: dict[str, list[float]] = field(factory=lambda: defaultdict(list))
    """Of the attempts that were answered 200, or 404 for what was erased, by kind."""

    refused: Counter[tuple[str, str, str]] = field(factory=Counter)
    """The other attempts, by kind, status or exception, and the fault during which they were made."""


@define
class Fleet:
    """The replicas as one service. Gives ``None`` for a request that nobody answered in time."""

    urls: Sequence[str]
    http: ClientSession
    faulty: Faulty
    log: CallLog
    choice: Random

    async def send(self, request: Request) -> Answer | None:
        first_sent = time.monotonic()
        turn, pause, uncertain = self.choice.randrange(len(self.urls)), _FIRST_PAUSE, False
        while time.monotonic() - first_sent < PATIENCE_SECONDS:
            sent = time.monotonic()
            try:
                status, data = await self._attempt(self.urls[turn], request)
            except (ClientError, ConnectionError, TimeoutError, Cut) as gone:
                outcome, again = type(gone).__name__, True
                uncertain = True
            else:
                outcome, again = str(status), status in TRY_AGAIN
                uncertain = uncertain or status == 503
            received = time.monotonic()
            if outcome in ("200", "404"):
                self.log.seconds[request.kind].append(received - sent)
            else:
                self.log.refused[request.kind, outcome, self.faulty.during(sent, received)] += 1
            if not again:
                return Answer(status, data, first_sent, sent, received, uncertain)
            await asyncio.sleep(pause * self.choice.uniform(0.5, 1))
            pause = min(2 * pause, _LONGEST_PAUSE)
            turn = (turn + 1) % len(self.urls)
        return None

    async def _attempt(self, url: str, request: Request) -> tuple[int, Any]:
        headers = {} if request.key is None else {"Idempotency-Key": request.key}
        async with self.http.request(
            request.method, url + request.path, json=request.body, headers=headers, timeout=_ONE_ATTEMPT
        ) as response:
            if request.streamed and response.status == 200:
                return 200, _told(await _events(response))
            envelope = json.loads(await response.read())
            assert envelope["code"] == response.status, envelope
            return response.status, envelope["data"]


async def _events(response: ClientResponse) -> list[Event]:
    reader, events = EventReader(), list[Event]()
    async for piece in response.content.iter_any():
        events += reader.feed(piece)
    return events


def _told(events: list[Event]) -> dict[str, Any]:
    """What a whole stream told, in the shape of the answer to a chat."""
    if not events or events[-1].type not in ("done", "error"):
        raise Cut
    assert events[0].type == "metadata", events[0]
    success = events[-1].type == "done"
    return {
        **events[0].payload,
        "success": success,
        "answer": answer_in(events) if success else None,
        "errorMessage": None if success else events[-1].payload,
        "status": "SUCCESS" if success else "FAILED",
    }
