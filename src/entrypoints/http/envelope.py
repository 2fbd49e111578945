"""The envelope of every JSON answer: ``{"code", "message", "data"}``, strict JSON in UTF-8."""

from __future__ import annotations

import json
from collections.abc import Mapping

import orjson
from aiohttp import web

from casenotes.core.text import Json, settle

_PLAIN_ONLY = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def json_bytes(value: Json) -> bytes:
    """The value as strict JSON on one line, in UTF-8. NaN and infinities, which no clean value holds, become null."""
    try:
        return orjson.dumps(value, option=_PLAIN_ONLY)
    except TypeError:  # it refuses integers of more than 64 bits, which JSON and what is stored may have
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def success(data: Json, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """An answer that holds what was asked for."""
    return _answer(status, "success", data, headers)


def failure(
    status: int, message: str, data: Json = None, *, headers: Mapping[str, str] | None = None
) -> web.Response:
    """An answer that says what was wrong, in words that are safe to show."""
    return _answer(status, settle(message), data, headers)


def _answer(status: int, message: str, data: Json, headers: Mapping[str, str] | None) -> web.Response:
    # Bytes, not text, which would be kept beside its bytes: a trace can have megabytes.
    body = json_bytes({"code": status, "message": message, "data": data})
    return web.Response(
        status=status, body=body, content_type="application/json", charset="utf-8", headers=headers
    )
