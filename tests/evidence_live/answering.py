"""A server with scripted answers, which notes what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from aiohttp import web
from attrs import field, frozen

from casenotes.adapters.evidence.live import Upstream

Answer: TypeAlias = Callable[["Asked"], Any]
"""Gives the JSON of an answer, or a whole response."""


@frozen
class Asked:
    """One request: its method, path, fields of query and form, and authorization."""

    method: str
    path: str
    fields: dict[str, str]
    authorization: str | None


@frozen
class Answering:
    """A server at ``url``; ``asked`` holds its requests."""

    url: str
    asked: list[Asked] = field(factory=list)

    def upstream(self, name: str = "Prometheus", timeout: float = 5) -> Upstream:
        return Upstream(name, self.url, timeout)


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[Answering]:
    """Serve until the block is left."""
    asked: list[Asked] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        form = await request.post() if request.method == "POST" else {}
        fields = {name: str(value) for name, value in [*request.query.items(), *form.items()]}
        one = Asked(request.method, request.path, fields, request.headers.get("Authorization"))
        asked.append(one)
        given = answer(one)
        if isinstance(given, Awaitable):
            given = await given
        return given if isinstance(given, web.StreamResponse) else web.json_response(given)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield Answering(f"http://127.0.0.1:{runner.addresses[0][1]}", asked)
    finally:
        await runner.cleanup()


async def silence(_: Asked) -> Any:
    """Answer nothing for long."""
    await asyncio.sleep(30)


def success(data: Any, **more: Any) -> dict[str, Any]:
    """An answer in Prometheus' form."""
    return {"status": "success", "data": data, **more}


def vector(*series: tuple[dict[str, str], str]) -> dict[str, Any]:
    result = [{"metric": labels, "value": [1_700_000_000, value]} for labels, value in series]
    return success({"resultType": "vector", "result": result})


def matrix(*series: tuple[dict[str, str], list[str]]) -> dict[str, Any]:
    result = [
        {"metric": labels, "values": [[1_700_000_000 + 30 * at, value] for at, value in enumerate(values)]}
        for labels, values in series
    ]
    return success({"resultType": "matrix", "result": result})
