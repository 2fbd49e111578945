"""Request bodies: bytes become one JSON object, or the request is refused before anything is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import NoReturn, TypeAlias

from aiohttp import web

from casenotes.core.errors import InvalidInput
from casenotes.core.text import MAX_DEPTH

LIMIT_BYTES = 1024 * 1024
"""The most bytes of a body, whether its length was announced or it came in chunks."""
READ_SECONDS = 30.0
"""How long a body may take to arrive."""

Body: TypeAlias = Mapping[str, object]


async def read_object(request: web.Request, *, optional: bool = False) -> Body:
    """The request's JSON object; empty when ``optional`` and there is no body.

    Raises ``InvalidInput`` naming ``body``, and aiohttp's 413 and 415.
    """
    if optional and not await _read(request):
        return {}
    charset = (request.charset or "utf-8").lower()
    if request.content_type != "application/json" or charset not in ("utf-8", "utf8"):
        raise web.HTTPUnsupportedMediaType
    return parse_object(await _read(request))


async def _read(request: web.Request) -> bytes:
    try:
        if request.content.is_eof():  # all of it came with the head, as most do: nothing is waited for
            return await request.read()
        async with asyncio.timeout(READ_SECONDS):
            return await request.read()
    except TimeoutError:
        raise InvalidInput("body", f"must arrive within {READ_SECONDS:g} s") from None
    except (web.RequestPayloadError, ConnectionError):
        raise InvalidInput("body", "could not be read to its end") from None


def parse_object(raw: bytes) -> Body:
    """The object that these bytes hold, as strict JSON nested at most ``MAX_DEPTH`` deep. Raises ``InvalidInput``."""
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise InvalidInput("body", "must be UTF-8") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise InvalidInput("body", "must be JSON") from None
    if not isinstance(value, dict):
        raise InvalidInput("body", "must be a JSON object")
    _check_depth(value)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _too_deep() -> InvalidInput:
    return InvalidInput("body", f"must not be nested deeper than {MAX_DEPTH} levels")


def _check_depth(value: object) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise _too_deep()
        level = [
            inner
            for outer in level
            for inner in (
                outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ()
            )
            if isinstance(inner, dict | list)
        ]
