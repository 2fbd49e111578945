"""``GET /api/diagnosis/{sessionId}/trace``: all that is on record of one run."""

from __future__ import annotations

from aiohttp import web

from casenotes.entrypoints.http import fields, shapes
from casenotes.entrypoints.http.envelope import success
from casenotes.entrypoints.http.keys import SERVICE


async def trace(request: web.Request) -> web.Response:
    """The run that ``runId`` names if it is the session's, else 404; without it, the session's latest."""
    session_id, run_id = fields.path_session_id(request), fields.query_identifier(request, "runId")
    return success(shapes.trace(await request.app[SERVICE].reading.trace(session_id, run_id)))
