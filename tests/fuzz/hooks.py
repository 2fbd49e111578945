"""What schemathesis is told about the service beyond its OpenAPI description. Loaded by schemathesis itself."""

from __future__ import annotations

import json
from typing import Any

import schemathesis
from support.agreed import check_stream_event
from support.sse import EventReader, answer_in

UNUSABLE_ID = "sessionId: must have 1 to 128 characters"
NO_TEXT = "sessionId: must be a string"
ALIASES = {"Id", "id", "ID"}
"""Names under which a session id is understood where there is none; beside one they may be anything."""


@schemathesis.check
def stream_is_whole(_context: Any, response: Any, _case: Any) -> None:
    """A stream tells ids first, then content and progress, and has one end; each event is as the contract says."""
    if response.status_code != 200 or "text/event-stream" not in response.headers["content-type"][0]:
        return
    reader = EventReader()
    events = reader.feed(response.content)
    for event in events:
        assert event.name == "message"
        assert list(event.object) == ["type", "data"]
        check_stream_event(event.object)
    kinds = [event.type for event in events]
    assert kinds[0] == "metadata" and kinds[-1] in ("done", "error"), kinds
    assert set(kinds[1:-1]) <= {"content", "progress"}, kinds
    assert kinds[-1] == "error" or answer_in(events), "an answered run has an answer"


@schemathesis.hook
def filter_failure(_context: Any, failure: Any, case: Any, response: Any) -> bool:
    """Whether a failure counts: which ids a session may be *created* with is said in words, not by the schema.

    A schema could not: an id of any form may be used for a session that is already there. So is what stands for a
    session id where there is none. And an id with a NUL in it breaks the schema's pattern, which the tool does not
    always see.
    """
    refused = response.status_code == 400 and type(failure).__name__ == "RejectedPositiveData"
    message = json.loads(response.content)["message"] if refused else ""
    return not (
        message.startswith(UNUSABLE_ID)
        or message.endswith(": must not hold NUL or a lone surrogate")
        or (message == NO_TEXT and _has_alias(case.body))
    )


def _has_alias(body: object) -> bool:
    return isinstance(body, dict) and body.get("sessionId") is None and not ALIASES.isdisjoint(body)
