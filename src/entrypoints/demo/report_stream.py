"""The AIOps stream, held to its contract event by event."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable

from attrs import frozen

from casenotes.entrypoints.demo.client import Data, promise
from casenotes.entrypoints.demo.sse import ServerSentEvent


@frozen
class StreamedReport:
    """A report as it was streamed: the ids of its run, and its text."""

    session_id: str
    run_id: str
    text: str


async def read_report(events: AsyncIterable[ServerSentEvent]) -> StreamedReport:
    """Read the stream to its end.

    Raises ``PromiseBroken`` unless metadata comes first and once, then text, then one ``done``, then nothing.
    """
    ids: Data = None
    pieces: list[str] = []
    ended = False
    async for event in events:
        kind, data = _message(event)
        promise(not ended, f"the stream goes on with {kind!r} after its end")
        promise((ids is None) == (kind == "metadata"), "the stream does not begin with its one metadata")
        match kind:
            case "metadata":
                promise(
                    isinstance(data, dict)
                    and all(isinstance(data.get(name), str) for name in ("sessionId", "runId")),
                    "the metadata names no sessionId and runId",
                )
                ids = data
            case "content" | "progress":
                promise(isinstance(data, str), f"the data of {kind!r} is no text")
                if kind == "content":
                    pieces.append(data)
            case "done":
                ended = True
            case "error":
                promise(False, f"the run failed: {data}")
            case _:
                promise(False, f"the stream has an event of the unknown type {kind!r}")
    promise(ended, "the stream broke off before its end")
    return StreamedReport(ids["sessionId"], ids["runId"], "".join(pieces))


def _message(event: ServerSentEvent) -> tuple[str, Data]:
    promise(event.name == "message", f"an event is named {event.name!r} instead of 'message'")
    try:
        message = json.loads(event.data)
    except ValueError:
        message = None
    promise(
        isinstance(message, dict) and list(message) == ["type", "data"],
        "an event's data is no JSON object of type and data",
    )
    return message["type"], message["data"]
