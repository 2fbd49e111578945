"""Sessions: listed, shown with their runs, their context cleared, erased."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from casenotes.core.views import RunSummary, SessionOverview
from casenotes.entrypoints.http import fields, shapes
from casenotes.entrypoints.http.bodies import read_object
from casenotes.entrypoints.http.envelope import success
from casenotes.entrypoints.http.keys import SERVICE
from casenotes.entrypoints.http.pagination import page_answer


async def list_sessions(request: web.Request) -> web.Response:
    """Sessions, latest active first."""
    reading, search = request.app[SERVICE].reading, fields.query_search(request)

    async def read(limit: int, before: str | None) -> Sequence[SessionOverview]:
        return await reading.sessions(query=search, limit=limit, before=before)

    return await page_answer(
        request,
        read,
        limit=fields.query_limit(request),
        before=fields.query_identifier(request, "before"),
        cursor=lambda overview: overview.session.session_id,
        shape=shapes.session_overview,
    )


async def list_runs(request: web.Request) -> web.Response:
    """A session's runs, newest first, without steps and tool calls."""
    reading, session_id = request.app[SERVICE].reading, fields.path_session_id(request)

    async def read(limit: int, before: str | None) -> Sequence[RunSummary]:
        return await reading.runs(session_id, limit=limit, before=before)

    return await page_answer(
        request,
        read,
        limit=fields.query_limit(request),
        before=fields.query_identifier(request, "before"),
        cursor=lambda run: run.run_id,
        shape=shapes.run_summary,
    )


async def show_session(request: web.Request) -> web.Response:
    """A session in short."""
    summary = await request.app[SERVICE].reading.session(fields.path_session_id(request))
    return success(shapes.session(summary))


async def clear_context(request: web.Request) -> web.Response:
    """Forget a conversation's context; its session and runs stay."""
    session_id = fields.session_id(await read_object(request))
    await request.app[SERVICE].conversations.clear(session_id)
    return success({"sessionId": session_id})


async def erase_session(request: web.Request) -> web.Response:
    """Remove a session everywhere; tells how much was removed."""
    removed = await request.app[SERVICE].conversations.erase(fields.path_session_id(request))
    return success(shapes.erasure(removed))
