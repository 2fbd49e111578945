"""A server of a language model that does what a test wants: answers, and every way not to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from aiohttp import web
from attrs import define, field

Play: TypeAlias = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]
"""Answers one request, given its body."""

MODEL = "m-1"
KEY = "sk-test-hunter2-0123456789abcdef"


@define
class ModelServer:
    """Plays ``plan`` where JSON is asked for and ``answer`` where a stream is; notes what it was asked."""

    plan: Play
    answer: Play
    base_url: str = ""
    asked: list[dict[str, Any]] = field(factory=list)
    keys: list[str | None] = field(factory=list)

    @property
    def prompts(self) -> list[str]:
        """The last message of each request."""
        return [request["messages"][-1]["content"] for request in self.asked]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        self.keys.append(request.headers.get("Authorization"))
        return await (self.answer if body.get("stream") else self.plan)(request, body)


@asynccontextmanager
async def serving_model(plan: Play, answer: Play) -> AsyncIterator[ModelServer]:
    """The server, on a port of its own. What hangs, hangs until the end of the block."""
    server = ModelServer(plan, answer)
    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", server.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield server
    finally:
        await runner.cleanup()


def _whole(message: dict[str, Any], reason: str = "stop") -> web.Response:
    return web.json_response(
        {
            "id": "c-1",
            "object": "chat.completion",
            "created": 1,
            "model": MODEL,
            "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
        }
    )


def saying(text: str | None, reason: str = "stop", **more: Any) -> Play:
    """A whole answer of these words."""

    async def play(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        return _whole({"content": text, **more}, reason)

    return play


def choosing(*numbers: int) -> Play:
    """A plan of these numbers of the list."""
    return saying(json.dumps({"reason": "they tell most", "lookups": numbers}))


def calling(arguments: str) -> Play:
    """A tool call with these arguments."""
    call = {"id": "t-1", "type": "function", "function": {"name": "look_at", "arguments": arguments}}
    return saying(None, "tool_calls", tool_calls=[call])


def telling(
    text: str, *, pieces_of: int = 9, ends: str | None = "stop", then: str = "", refusal: str | None = None
) -> Play:
    """A stream of these words, its end and its tokens; without ``ends``, it is cut after the words.

    ``then``: ``hang`` after the words, or ``error`` for an error in the stream.
    """

    async def play(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for at in range(0, len(text), pieces_of):
            await _send(response, {"delta": {"content": text[at : at + pieces_of]}, "finish_reason": None})
        if refusal is not None:
            await _send(response, {"delta": {"refusal": refusal}, "finish_reason": None})
        if then == "hang":
            await asyncio.Event().wait()
        if then == "error":
            await response.write(b'data: {"error": {"message": "hunter2 is out of memory", "code": 500}}\n\n')
        if ends is not None:
            await _send(response, {"delta": {}, "finish_reason": ends})
            if body.get("stream_options"):
                usage = {"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100}
                await _send(response, None, usage)
            await response.write(b"data: [DONE]\n\n")
        elif request.transport is not None and then != "error":
            request.transport.close()
        return response

    return play


async def _send(response: web.StreamResponse, choice: Any, usage: Any = None) -> None:
    chunk = {
        "id": "c-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": MODEL,
        "choices": [] if choice is None else [{"index": 0, **choice}],
        "usage": usage,
    }
    await response.write(f"data: {json.dumps(chunk)}\n\n".encode())


def refusing(status: int, **headers: str) -> Play:
    """This HTTP status, with words that must not be shown."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def play(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        error = {"error": {"message": f"hunter2 said no to {KEY}", "type": "x", "code": "y"}}
        return web.json_response(error, status=status, headers=named)

    return play


async def hanging(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
    """No answer."""
    await asyncio.Event().wait()
    raise AssertionError("never set")


async def page(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
    """A web page with status 200, as a proxy's log-in page is."""
    return web.Response(text="<html><h1>Log in, hunter2</h1></html>", content_type="text/html")


def written(text: str, content_type: str = "application/json") -> Play:
    """This body."""

    async def play(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        return web.Response(text=text, content_type=content_type)

    return play


async def vanishing(request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
    """The connection closed without an answer."""
    assert request.transport is not None
    request.transport.close()
    return web.Response()


def in_turn(plays: Sequence[Play]) -> Play:
    """The plays one after the other, the last of them again and again."""
    left = list(plays)

    async def play(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        return await (left.pop(0) if len(left) > 1 else left[0])(request, body)

    return play


def refusing_where(names: Sequence[str], otherwise: Play, status: int = 400) -> Play:
    """Refuses each request that has one of these fields, as a server that does not know them does."""
    refuse = refusing(status)

    async def play(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        return await (refuse if any(name in body for name in names) else otherwise)(request, body)

    return play
