"""A service that does not keep its word: the real one, behind a proxy that changes what it says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import aiohttp
from aiohttp import web
from attrs import field, frozen
from support.scripted import Scripted, usual

from casenotes.entrypoints.http.server import listening
from casenotes.entrypoints.settings import Settings

SETTINGS = Settings(database_url="memory://", context_url="memory://")
Data: TypeAlias = Any


@frozen
class Lie:
    """What is changed: of requests to paths that hold ``where``, the query, the JSON of the answer, or its text."""

    where: str
    query: Callable[[dict[str, str]], dict[str, str]] = lambda given: given
    answer: Callable[[Data], Data] = lambda told: told
    text: Callable[[str], str] = lambda told: told
    status: Callable[[int], int] = field(default=lambda due: due)


@asynccontextmanager
async def lying(lie: Lie) -> AsyncIterator[str]:
    """The URL of a service that tells this lie."""
    async with (
        listening(SETTINGS, diagnostician=Scripted(usual)) as here,
        aiohttp.ClientSession(auto_decompress=True) as client,
    ):

        async def forward(request: web.Request) -> web.Response:
            told = lie.where in request.path
            query = dict(request.query)
            async with client.request(
                request.method,
                here.url + request.path,
                params=lie.query(query) if told else query,
                data=await request.read(),
                headers={"Content-Type": "application/json"},
            ) as response:
                text = await response.text()
                kind, status = response.content_type, response.status
            if told:
                if kind == "application/json":
                    text = json.dumps(lie.answer(json.loads(text)))
                text, status = lie.text(text), lie.status(status)
            return web.Response(text=text, status=status, content_type=kind)

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", forward)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()
