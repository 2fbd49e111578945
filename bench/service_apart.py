"""The service, and a bare aiohttp application, in one process of their own: ``python -m bench.service_apart``.

It is told what to serve in its environment, as the service is. Its first line of output is JSON: where both listen.
``POST /bytes`` sets what the bare application answers from memory.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator

from aiohttp import web

from casenotes.entrypoints.http import logs
from casenotes.entrypoints.http.server import listening
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import AgentEvent, Answered, Enquiry

NEVER = "never"
"""A question that is not answered as long as the process lives."""


class Idle:
    """A ``Diagnostician`` that does nothing, and answers; or does nothing and does not."""

    async def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        if enquiry.question == NEVER:
            await asyncio.Event().wait()
        yield Answered("Nothing was looked at.")


class Bare:
    """An application that answers with the bytes it was given."""

    def __init__(self) -> None:
        self._body = b""

    async def answer(self, _: web.Request) -> web.Response:
        return web.Response(body=self._body, content_type="application/json", charset="utf-8")

    async def take(self, request: web.Request) -> web.Response:
        self._body = await request.read()
        return web.Response()

    def application(self) -> web.Application:
        application = web.Application()
        application.add_routes([web.post("/bytes", self.take), web.get("/{path:.*}", self.answer)])
        return application


async def main() -> None:
    logs.configure()
    runner = web.AppRunner(Bare().application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with listening(Settings.from_environ(), diagnostician=Idle()) as here:
        bare = f"http://127.0.0.1:{runner.addresses[0][1]}"
        print(json.dumps({"product": here.url, "bare": bare}), flush=True)
        await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
