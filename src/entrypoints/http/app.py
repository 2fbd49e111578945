"""The application: routes over a service, with errors answered, requests counted and callers checked."""

from __future__ import annotations

from aiohttp import web
from aiohttp.typedefs import Handler

from casenotes.core.service.service import Service
from casenotes.entrypoints.http.admission import callers_admitted
from casenotes.entrypoints.http.api_keys import ApiKeys
from casenotes.entrypoints.http.bodies import LIMIT_BYTES
from casenotes.entrypoints.http.errors import errors_answered
from casenotes.entrypoints.http.keys import METRICS, SERVICE
from casenotes.entrypoints.http.metrics import Metrics
from casenotes.entrypoints.http.origins import strangers_refused
from casenotes.entrypoints.http.rates import Rates
from casenotes.entrypoints.http.routes import routes
from casenotes.entrypoints.http.security import add_security_headers
from casenotes.entrypoints.settings import Settings


def make_app(
    service: Service, settings: Settings, metrics: Metrics | None = None, *, private: bool = False
) -> web.Application:
    """The application over a running service. ``metrics`` are those that the service's observer counts in.

    ``private``: it listens where only this machine reaches it. Without keys it is then spoken to under loopback's
    names alone, unless the settings allow others.
    """
    counted = metrics or Metrics.fresh()
    counted.show_running(lambda: len(service.executions.running()))
    keys = ApiKeys.of(settings)
    limit = settings.rate_limit
    rates = None if limit is None else Rates(limit, settings.rate_burst)
    hosts = settings.allowed_hosts
    if hosts is None and private and not keys.required:
        hosts = frozenset()
    app = web.Application(
        client_max_size=LIMIT_BYTES,
        middlewares=[
            requests_counted,
            errors_answered,
            strangers_refused(hosts),
            callers_admitted(keys, rates, settings.trusted_proxies),
        ],
    )
    app[SERVICE] = service
    app[METRICS] = counted
    app.add_routes(routes())
    app.on_response_prepare.append(add_security_headers)
    return app


@web.middleware
async def requests_counted(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Count the request by the template of its path, once it is answered."""
    response = await handler(request)
    resource = request.match_info.route.resource
    request.app[METRICS].answered(
        request.method, "unknown" if resource is None else resource.canonical, response.status
    )
    return response
