"""Which pages may speak to the service from inside a browser, and under which names it is spoken to.

A browser lends every page that it shows its place in the network. Without an API key that place is all it takes: a
page of anybody's could have a service on this machine diagnose, rate and erase. Clients that are no browsers send
neither ``Sec-Fetch-Site`` nor ``Origin``, and are not concerned.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from casenotes.core.errors import InvalidInput
from casenotes.entrypoints.http.addresses import is_loopback
from casenotes.entrypoints.http.routes import is_guarded, is_probe

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#\\\s]+)(?::(?P<port>[0-9]{1,5}))?")
_PORTS = {"http": 80, "https": 443}
_OWN = frozenset({"same-origin", "none"})
"""A page of the service itself; the address bar, a bookmark."""


def strangers_refused(hosts: frozenset[str] | None) -> Middleware:
    """The middleware that refuses what a page of another origin asks, and what is asked under another's name.

    ``hosts``: the names, besides those of loopback, that ``Host`` may have; None: any. Probes go by addresses that
    nobody knows beforehand, and tell nothing: they may use any. Raises ``InvalidInput`` naming the header.
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if hosts is not None and not is_probe(request):
            _check_host(request, hosts)
        if is_guarded(request):
            _check_origin(request)
        return await handler(request)

    return check


def _check_host(request: web.Request, hosts: frozenset[str]) -> None:
    """A name that an attacker has made lead here is not one of ours, and its pages would be of the same origin."""
    given = request.headers.get("Host")
    if given is None:  # no browser leaves it out
        return
    name = _authority(given)[0]
    if not is_loopback(name) and name not in hosts:
        raise InvalidInput("Host", "is not a name of this service; CASENOTES_ALLOWED_HOSTS can make it one")


def _check_origin(request: web.Request) -> None:
    """What the browser says of the page that asks; one that says little (plain HTTP) sends at least its origin."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        if site not in _OWN:
            raise InvalidInput("Sec-Fetch-Site", "a page of another origin may not ask this")
        return
    origin = request.headers.get("Origin")
    if origin is not None and not _same(origin, request.headers.get("Host", "")):
        raise InvalidInput("Origin", "a page of another origin may not ask this")


def _same(origin: str, host: str) -> bool:
    """Whether they name the same host and port. The scheme is the browser's: a proxy may end TLS in between."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    default = _PORTS.get(parts.scheme)
    theirs, ours = _authority(parts.netloc), _authority(host)
    return (
        default is not None
        and ours[0] != ""
        and (theirs[0], theirs[1] or default) == (ours[0], ours[1] or default)
    )


@lru_cache(maxsize=256)
def _authority(text: str) -> tuple[str, int | None]:
    """The name (in lower case, without brackets) and the port of ``name[:port]``; of anything else, no name."""
    found = _HOST.fullmatch(text)
    if found is None:
        return "", None
    name = found["name"].strip("[]").lower().removesuffix(".")
    return name, None if found["port"] is None else int(found["port"])
