"""The envelope of every JSON answer: ``{"code", "message", "data"}``, strict JSON in UTF-8."""

from __future__ import annotations

import json
from collections.abc import Mapping

from aiohttp import web

from casenotes.core.text import Json, settle


def json_line(value: Json) -> str:
    """The value as strict JSON on one line. Raises ``ValueError`` for NaN and infinities."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def success(data: Json, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """An answer that holds what was asked for."""
    return _answer(status, "success", data, headers)


def failure(
    status: int, message: str, data: Json = None, *, headers: Mapping[str, str] | None = None
) -> web.Response:
    """An answer that says what was wrong, in words that are safe to show."""
    return _answer(status, settle(message), data, headers)


def _answer(status: int, message: str, data: Json, headers: Mapping[str, str] | None) -> web.Response:
    text = json_line({"code": status, "message": message, "data": data})
    return web.Response(status=status, text=text, content_type="application/json", headers=headers)
