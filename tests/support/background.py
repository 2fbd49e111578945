"""The service in a thread of its own, for tests whose thread drives a browser."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from attrs import frozen
from support.service import Backend, Running

from casenotes.ports.agent import Diagnostician

T = TypeVar("T")


@frozen
class Background:
    """A service that runs in another thread's event loop."""

    here: Running
    loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        return self.here.client.url

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine over there, and give what it gives."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    def do(self, act: Callable[[], object]) -> None:
        """Do something over there soon."""
        self.loop.call_soon_threadsafe(act)


@contextmanager
def in_background(
    backend: Backend, diagnostician: Diagnostician | None = None, *, key: str | None = None, **changed: Any
) -> Iterator[Background]:
    """Serve until the block is left."""
    started: Future[tuple[Background, asyncio.Event]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        async with backend.serving(diagnostician, key=key, **changed) as here:
            started.set_result((Background(here, asyncio.get_running_loop()), stop))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as fault:
            if started.done():
                raise
            started.set_exception(fault)

    thread = threading.Thread(target=run, name="service under test")
    thread.start()
    try:
        background, stop = started.result(60)
        try:
            yield background
        finally:
            background.do(stop.set)
    finally:
        thread.join(60)
        assert not thread.is_alive()
