"""Serving: the service opened, its address listened on, and on a signal a way out that loses nothing."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from aiohttp import web
from attrs import frozen

from casenotes.core.errors import InvalidSettings
from casenotes.core.service.service import Service
from casenotes.entrypoints.bootstrap import open_service
from casenotes.entrypoints.http import logs
from casenotes.entrypoints.http.addresses import is_loopback
from casenotes.entrypoints.http.api_keys import ApiKeys
from casenotes.entrypoints.http.app import make_app
from casenotes.entrypoints.http.connections import Runner
from casenotes.entrypoints.http.metrics import Metrics
from casenotes.entrypoints.http.observer import RunReporter
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import Diagnostician

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9900


@frozen
class Listening:
    """A service that answers at ``url``."""

    url: str
    service: Service
    site: web.TCPSite


async def serve(
    settings: Settings,
    *,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    insecure: bool = False,
    diagnostician: Diagnostician | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; prints the address on a line of its own when ready.

    Then no new connection is taken, running executions may finish for the settings' grace, those that do not are
    ended FAILED, and what they were asked by is answered. A second signal cuts the grace short. Raises what
    ``listening`` raises.
    """
    logs.configure(settings.log_format)
    async with listening(
        settings, host=host, port=port, insecure=insecure, diagnostician=diagnostician
    ) as here:
        signals = _signals()
        gc.freeze()  # what was imported stays: looking it over again would hold up all requests for a while
        print(f"casenotes listens on {here.url}", flush=True)
        await signals.get()
        await here.site.stop()
        await _finish(here.service, settings.shutdown_grace, signals)


@asynccontextmanager
async def listening(
    settings: Settings,
    *,
    host: str = DEFAULT_HOST,
    port: int = 0,
    insecure: bool = False,
    diagnostician: Diagnostician | None = None,
) -> AsyncIterator[Listening]:
    """A service that answers on this address for the length of the block; port 0 takes a free one.

    Raises ``InvalidSettings`` for an address that others can reach when no API key is set, unless ``insecure``,
    and for one that cannot be listened on; else what ``open_service`` raises.
    """
    if not (insecure or is_loopback(host) or ApiKeys.of(settings).required):
        raise InvalidSettings(
            f"{host} can be reached by others and no API key is set: set CASENOTES_API_KEYS, or pass --insecure"
        )
    metrics = Metrics.fresh()
    async with open_service(settings, RunReporter(metrics), diagnostician=diagnostician) as service:
        app = make_app(service, settings, metrics, private=is_loopback(host))
        runner = Runner(app, settings.max_connections)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port)
            await _start(site, host, port)
            yield Listening(_url(runner, host), service, site)
        finally:
            await runner.cleanup()


async def _start(site: web.TCPSite, host: str, port: int) -> None:
    try:
        await site.start()
    except OSError as error:
        raise InvalidSettings(f"cannot listen on {host}:{port}: {error.strerror}") from None


def _url(runner: web.AppRunner, host: str) -> str:
    port = runner.addresses[0][1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _signals() -> asyncio.Queue[signal.Signals]:
    """The signals that ask the process to go, as they come."""
    loop, arrived = asyncio.get_running_loop(), asyncio.Queue[signal.Signals]()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, arrived.put_nowait, name)
    return arrived


async def _finish(service: Service, grace: timedelta, signals: asyncio.Queue[signal.Signals]) -> None:
    closing = asyncio.create_task(service.executions.close(grace))
    hurry = asyncio.create_task(signals.get())
    await asyncio.wait({closing, hurry}, return_when=asyncio.FIRST_COMPLETED)
    if not closing.done():
        await service.executions.close(timedelta(0))
    hurry.cancel()
    await closing
