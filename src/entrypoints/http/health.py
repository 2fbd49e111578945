"""Whether the process lives, whether it can serve, and its numbers."""

from __future__ import annotations

import asyncio

from aiohttp import web

from casenotes.core.errors import CasenotesError, LedgerUnavailable, SchemaOutOfDate
from casenotes.core.service.service import Service
from casenotes.core.text import JsonObject
from casenotes.entrypoints.http.envelope import failure, success
from casenotes.entrypoints.http.errors import RETRY_AFTER_SECONDS
from casenotes.entrypoints.http.keys import METRICS, SERVICE
from casenotes.entrypoints.http.metrics import CONTENT_TYPE

PATIENCE_SECONDS = 2.0
READY = "ready"


async def alive(_request: web.Request) -> web.Response:
    """200 as long as the process answers at all."""
    return success({"status": "alive"})


async def ready(request: web.Request) -> web.Response:
    """503 while the ledger cannot be used; the context store's state is told and changes nothing."""
    service = request.app[SERVICE]
    ledger, context = await asyncio.gather(_ledger(service), _context(service))
    state: JsonObject = {"ledger": ledger, "context": context}
    if ledger == READY:
        return success(state)
    return failure(
        503, f"the ledger is not ready: {ledger}", state, headers={"Retry-After": str(RETRY_AFTER_SECONDS)}
    )


async def _ledger(service: Service) -> str:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await service.ledger.check()
    except SchemaOutOfDate as error:
        return str(error)
    except (LedgerUnavailable, TimeoutError):
        return "unavailable"
    return READY


async def _context(service: Service) -> str:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await service.context.ping()
    except (CasenotesError, TimeoutError):
        return "unavailable"
    return READY


async def metrics(request: web.Request) -> web.Response:
    """The application's numbers, in Prometheus' text format."""
    return web.Response(body=request.app[METRICS].exposition(), headers={"Content-Type": CONTENT_TYPE})
