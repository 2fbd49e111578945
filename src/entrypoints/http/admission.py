"""Who may ask, and how often."""

from __future__ import annotations

from collections.abc import Collection

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from casenotes.entrypoints.http.addresses import Network, caller
from casenotes.entrypoints.http.api_keys import ApiKeys
from casenotes.entrypoints.http.envelope import failure
from casenotes.entrypoints.http.rates import Rates
from casenotes.entrypoints.http.routes import is_guarded


def callers_admitted(keys: ApiKeys, rates: Rates | None, proxies: Collection[Network]) -> Middleware:
    """The middleware that admits a request to ``/api`` and ``/metrics``: its key, where keys are set, and its rate.

    Each key has a rate of its own; without keys, each address. An address that keeps coming with wrong keys uses
    up its rate too, and then gets the same 429 whatever key it sends: the answer does not tell a right guess.
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_guarded(request):
            return await handler(request)
        if rates is None and not keys.required:
            return await handler(request)
        address = caller(request.remote, request.headers.getall("X-Forwarded-For", ()), proxies)
        if not keys.required:
            wait = rates.take(address) if rates else 0
            return _too_often(wait) if wait else await handler(request)
        if rates and (wait := rates.wait(address)):
            return _too_often(wait)
        holder = keys.holder(request.headers.getall("Authorization", ()))
        wait = rates.take(address if holder is None else f"key {holder}") if rates else 0
        if holder is None:
            return _no_key()
        return _too_often(wait) if wait else await handler(request)

    return check


def _no_key() -> web.Response:
    message = "an API key is needed: Authorization: Bearer <key>"
    return failure(401, message, headers={"WWW-Authenticate": "Bearer"})


def _too_often(wait: int) -> web.Response:
    message = f"more requests than are allowed; the next may come in {wait} s"
    return failure(429, message, headers={"Retry-After": str(wait)})
