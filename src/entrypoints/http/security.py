"""What a browser may do with an answer."""

from __future__ import annotations

from aiohttp import web

_CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",  # with no policy allowed: no script can make HTML of a string
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Server": "casenotes",
    "Content-Security-Policy": _CONTENT_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


async def add_security_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Harden every answer of an application as it is prepared: streams and errors too."""
    harden(response)


def harden(response: web.StreamResponse) -> None:
    """Give the answer the headers that hold a browser back."""
    response.headers.update(HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
