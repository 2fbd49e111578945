"""The demo: the scenario of the spec."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler
from support.service import Backend, Running, listening_app

from casenotes.entrypoints.demo import demonstrate
from casenotes.entrypoints.http.app import make_app


def test_demo_script_queries_exact_trace(backend: Backend) -> None:
    asked: list[str] = []

    @web.middleware
    async def noting(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked.append(request.path_qs)
        return await handler(request)

    async def scenario(here: Running) -> None:
        app = make_app(here.service, here.settings)
        app.middlewares.append(noting)
        async with listening_app(app) as client:
            await demonstrate(client.url)
        made = {
            row["runId"]
            for one in (await here.client.get("/api/sessions")).data
            for row in (await here.client.runs(one["sessionId"])).data
        }
        traced = [parse_qs(urlsplit(path).query).get("runId", [""])[0] for path in asked if "/trace" in path]
        assert made and made <= set(traced)

    backend.run(scenario)
