"""Pages of a list: a further one is announced in the ``Link`` header."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from aiohttp import web
from yarl import URL

from casenotes.core.text import JsonObject
from casenotes.entrypoints.http.envelope import success

T = TypeVar("T")
Cursor = TypeVar("Cursor", str, int)


async def page_answer(
    request: web.Request,
    read: Callable[[int, Cursor | None], Awaitable[Sequence[T]]],
    *,
    limit: int,
    before: Cursor | None,
    cursor: Callable[[T], Cursor],
    shape: Callable[[T], JsonObject],
) -> web.Response:
    """The page ``read(limit, before)``; ``cursor`` gives the place after which the next one begins."""
    rows = await read(limit, before)
    headers = {}
    if len(rows) == limit and await read(1, last := cursor(rows[-1])):
        headers["Link"] = f'<{_next(request.rel_url, limit, last)}>; rel="next"'
    return success([shape(row) for row in rows], headers=headers)


def _next(url: URL, limit: int, before: str | int) -> str:
    return str(url.update_query(limit=str(limit), before=str(before)))
