"""``GET /api/cases``: answers worth finding again."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from casenotes.core.model import Case
from casenotes.entrypoints.http import fields, shapes
from casenotes.entrypoints.http.keys import SERVICE
from casenotes.entrypoints.http.pagination import page_answer


async def list_cases(request: web.Request) -> web.Response:
    """Active cases, newest first."""
    reading, search = request.app[SERVICE].reading, fields.query_search(request)

    async def read(limit: int, before: int | None) -> Sequence[Case]:
        return await reading.cases(query=search, limit=limit, before=before)

    return await page_answer(
        request,
        read,
        limit=fields.query_limit(request),
        before=fields.query_case_id(request),
        cursor=_id_of,
        shape=shapes.case,
    )


def _id_of(case: Case) -> int:
    assert case.id is not None  # a stored case has one
    return case.id
