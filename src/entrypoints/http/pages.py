"""The pages, their files, and the contract. All of it ships with the package and is read once."""

from __future__ import annotations

import hashlib
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

FOLDER = Path(__file__).parent / "static"
CONTRACT = Path(__file__).parent / "openapi.yaml"

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def routes() -> list[web.RouteDef]:
    """A route for each page, for each file that the pages use, and for the contract."""
    pages = {"/": "console.html", "/trace": "trace.html", "/cases": "cases.html"}
    found = [web.get(path, _file(FOLDER / name)) for path, name in pages.items()]
    found += [
        web.get(f"/static/{path.name}", _file(path))
        for path in sorted(FOLDER.iterdir())
        if path.suffix in _TYPES and path.suffix != ".html"
    ]
    found.append(web.get("/api/openapi.json", _contract()))
    return found


def _file(path: Path) -> Handler:
    return _constant(path.read_bytes(), _TYPES[path.suffix])


def _contract() -> Handler:
    # The file is written in the part of YAML that is JSON.
    return _constant(CONTRACT.read_bytes(), "application/json")


def _constant(body: bytes, content_type: str) -> Handler:
    # A browser asks each time whether its copy is still the one of this version.
    tag = hashlib.sha256(body).hexdigest()[:32]
    headers = {"Cache-Control": "no-cache", "ETag": f'"{tag}"'}

    async def answer(request: web.Request) -> web.Response:
        if any(known.value == tag for known in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type=content_type, charset="utf-8", headers=headers)

    return answer
