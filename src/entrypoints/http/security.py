"""Who may ask, and what a browser may do with an answer."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from attrs import define, field

from casenotes.entrypoints.http.envelope import failure
from casenotes.entrypoints.settings import Settings

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
_HEADERS = {
    "Server": "casenotes",
    "Content-Security-Policy": _CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


async def add_security_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Give every answer, streams and errors too, the headers that hold a browser back."""
    response.headers.update(_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")


@define
class ApiKeys:
    """The keys that open ``/api`` and ``/metrics``: those of the settings, and those of a file that may change.

    While the file cannot be read, the keys read last stay in force: a file in the middle of being replaced neither
    opens the service nor shuts its callers out.
    """

    _fixed: frozenset[str]
    _file: Path | None
    _of_file: frozenset[str] = field(factory=frozenset, init=False)
    _seen: tuple[int, int, int] | None = field(default=None, init=False)

    @classmethod
    def of(cls, settings: Settings) -> ApiKeys:
        return cls(settings.api_keys, settings.api_keys_file)

    @property
    def required(self) -> bool:
        """Whether callers need a key at all."""
        return bool(self._fixed) or self._file is not None

    def admit(self, authorization: str) -> bool:
        """Whether this ``Authorization`` header carries a key. Each key is compared, in constant time."""
        scheme, _, given = authorization.partition(" ")
        offered = hashlib.sha256(given.strip().encode("utf-8", "surrogateescape")).digest()
        matches = [
            hmac.compare_digest(offered, hashlib.sha256(key.encode()).digest()) for key in self._current()
        ]
        return any(matches) and scheme.lower() == "bearer"

    def _current(self) -> frozenset[str]:
        if self._file is not None:
            try:
                stat = self._file.stat()
                seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
                if seen != self._seen:
                    lines = self._file.read_text("utf-8").splitlines()
                    self._of_file = frozenset(key for line in lines if (key := line.strip()))
                    self._seen = seen
            except (OSError, UnicodeDecodeError):
                structlog.get_logger("casenotes.http").warning("the file of API keys cannot be read")
        return self._fixed | self._of_file


def keys_required(keys: ApiKeys) -> Middleware:
    """The middleware that turns away requests to ``/api`` and ``/metrics`` without a key, where keys are set."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        guarded = request.path == "/metrics" or request.path == "/api" or request.path.startswith("/api/")
        if keys.required and guarded and not keys.admit(request.headers.get("Authorization", "")):
            return failure(
                401,
                "an API key is needed: Authorization: Bearer <key>",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return await handler(request)

    return check
