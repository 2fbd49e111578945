#!/usr/bin/env python3
"""Two questions in one session, and the trace of each run by its runId. Needs nothing but Python.

python3 demo/demo.py [URL]          CASENOTES_API_KEY=... where the service wants a key
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:9900"


def send(path: str, body: object = None) -> Any:
    """The open answer to a GET, or to a POST of ``body``."""
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("CASENOTES_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body).encode()
    return urlopen(Request(URL + path, data, headers))


def api(path: str, body: object = None) -> Any:
    with send(path, body) as answer:
        return json.load(answer)["data"]


def show(run: dict[str, Any]) -> None:
    """Ask for exactly this run's trace; without the runId it would be that of the latest."""
    session_id, run_id = run["sessionId"], run["runId"]
    trace = api(f"/api/diagnosis/{quote(session_id, safe='')}/trace?{urlencode({'runId': run_id})}")
    assert trace["runId"] == run_id
    print(f"{run_id}  {trace['run']['agentFlow']}: {trace['run']['query']}")
    for call in trace["toolInvocations"]:
        print(f"  T{call['sequence']} {call['toolName']} {call['status']}")
    page = urlencode({"sessionId": session_id, "runId": run_id}, quote_via=quote)
    print(f"  page {URL}/trace?{page}")


def report() -> dict[str, Any]:
    """Have the firing alerts diagnosed; the ids come first, then the report."""
    with send("/api/ai_ops", {}) as stream:
        events = [json.loads(line[6:]) for line in stream if line.startswith(b"data: ")]
    ids: dict[str, Any] = events[0]["data"]
    return ids


first = api("/api/chat", {"question": "Why is checkout slow?"})
second = api("/api/chat", {"sessionId": first["sessionId"], "question": "What changed in payment?"})
for run in (first, second, report()):
    show(run)
rated = api("/api/feedback", {"sessionId": first["sessionId"], "runId": first["runId"], "feedback": "useful"})
print(f"useful: {rated['runId']}, case {rated['caseId']}")
