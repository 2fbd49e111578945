"""An execution as server-sent events: its ids, its answer as it is written, its end."""

from __future__ import annotations

from contextlib import aclosing

from aiohttp import web
from aiohttp_sse import EventSourceResponse

from casenotes.core.model import DiagnosisRun
from casenotes.core.service.stream import Content, Execution, Note, Outcome, StreamEvent
from casenotes.core.text import Json
from casenotes.core.words import RunStatus
from casenotes.entrypoints.http import shapes
from casenotes.entrypoints.http.envelope import json_bytes

EVENT = "message"
PING_SECONDS = 10.0

_ESCAPES = {ord(line_end): f"\\u{ord(line_end):04x}" for line_end in "\x85\u2028\u2029"}
"""What some readers take for the end of a line, though server-sent events do not: JSON lets it be escaped."""


async def stream(request: web.Request, execution: Execution) -> web.StreamResponse:
    """Answer with the execution's events, from its first on.

    A client that goes away or stalls ends this answer only: nobody waits for it, and the run goes on.
    """
    response = EventSourceResponse(sep="\n", allow_all_methods=True, ping_interval=PING_SECONDS)
    response.headers["Content-Type"] = "text/event-stream; charset=utf-8"
    del response.headers[
        "Connection"
    ]  # aiohttp knows whether the request's version of HTTP can keep it alive
    try:
        await response.prepare(request)
        async with response, aclosing(execution.follow()) as events:
            await _send(response, "metadata", shapes.started(execution.run))
            async for event in events:
                await _send(response, *_told(event))
    except (ConnectionError, TimeoutError):
        pass
    return response


def _told(event: StreamEvent) -> tuple[str, Json]:
    match event:
        case Content(text):
            return "content", text
        case Note(text):
            return "progress", text
        case Outcome(run):
            return _end(run)


def _end(run: DiagnosisRun) -> tuple[str, Json]:
    if run.status is RunStatus.SUCCESS:
        return "done", None
    return "error", run.error_message or "the run failed"


async def _send(response: EventSourceResponse, kind: str, data: Json) -> None:
    line = json_bytes({"type": kind, "data": data}).decode().translate(_ESCAPES)
    await response.send(line, event=EVENT)
