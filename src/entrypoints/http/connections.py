"""Connections: how many there are, how long one may keep us waiting, and what is answered to what is no HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import structlog
from aiohttp import web

from casenotes.entrypoints.http.envelope import failure
from casenotes.entrypoints.http.errors import RETRY_AFTER_SECONDS, of_http, unforeseen
from casenotes.entrypoints.http.logs import AccessLog
from casenotes.entrypoints.http.security import HEADERS, harden

IDLE_SECONDS = 75.0
"""How long a connection may be without a whole head of a request; longer than proxies keep theirs (nginx: 60 s)."""
STALL_SECONDS = 120.0
"""How long a client may take nothing of an answer that waits for it."""
LAST_WORDS_SECONDS = 3.0
"""How long answers that are under way may take to be sent once every run has ended."""

_Handler: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def _full() -> bytes:
    """The whole answer to a connection beyond the limit: it gets no handler that could make one."""
    body = failure(503, "as many connections as are allowed are open").body
    assert isinstance(body, bytes)
    headers = HEADERS | {
        "Cache-Control": "no-store",
        "Connection": "close",
        "Content-Length": str(len(body)),
        "Content-Type": "application/json; charset=utf-8",
        "Retry-After": str(RETRY_AFTER_SECONDS),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 503 Service Unavailable\r\n{lines}\r\n".encode() + body


class Runner(web.AppRunner):
    """Runs an application on connections of ours, at most ``most`` at once; those beyond are told 503 and closed."""

    __slots__ = ("_most",)

    def __init__(self, app: web.Application, most: int) -> None:
        super().__init__(app, shutdown_timeout=LAST_WORDS_SECONDS)
        self._most = most

    async def _make_server(self) -> web.Server:
        plain = await super()._make_server()
        return _Server(_in_envelope(plain.request_handler), self._most, request_factory=plain.request_factory)


def _in_envelope(handler: _Handler) -> _Handler:
    """The application's handler, with what aiohttp raises outside of every middleware (417) put into the envelope."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            return of_http(error)

    return handle


class _Server(web.Server):
    def __init__(self, handler: _Handler, most: int, *, request_factory: Any) -> None:
        super().__init__(handler, request_factory=request_factory)
        self._most = most

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, full=len(self.connections) >= self._most)


class _Connection(web.RequestHandler):
    __slots__ = ("_full", "_stall")

    def __init__(self, server: web.Server, *, full: bool) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log_class=AccessLog,
            keepalive_timeout=IDLE_SECONDS,
        )
        self._full = full
        self._stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._full:
            assert isinstance(transport, asyncio.WriteTransport)
            transport.write(_full())
            self.force_close()
        elif hasattr(
            socket, "TCP_USER_TIMEOUT"
        ):  # of the last bytes, which no handler waits for, Linux takes care
            connected = transport.get_extra_info("socket")
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(STALL_SECONDS * 1000))

    def connection_lost(self, exc: BaseException | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch(None)

    def resume_writing(self) -> None:
        self._unwatch()
        super().resume_writing()

    def _watch(self, waiting: int | None) -> None:
        """Look again later whether fewer bytes wait to be taken than now; if not, nobody reads."""
        transport = self.transport
        if transport is None:
            return
        now = transport.get_write_buffer_size()
        if waiting is not None and now >= waiting:
            transport.abort()
            return
        self._stall = asyncio.get_running_loop().call_later(STALL_SECONDS, self._watch, now)

    def _unwatch(self) -> None:
        if self._stall is not None:
            self._stall.cancel()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what never became a request of the application; ``exc`` may repeat a header, so it stays here."""
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun")
        if status == 400:
            structlog.get_logger("casenotes.http").info(
                "malformed request", why=type(exc).__name__, remote=request.remote
            )
            answer = failure(400, "request: is not well-formed HTTP, or its head is too long")
        else:
            answer = unforeseen(request, exc)
        harden(answer)
        answer.force_close()
        return answer
