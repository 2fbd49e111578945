"""The fields of requests, checked one by one; every refusal names the field as the wire does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from aiohttp import web

from casenotes.core import rules
from casenotes.core.errors import InvalidInput
from casenotes.core.service.reading import DEFAULT_LIMIT, MAX_LIMIT
from casenotes.core.service.recording import Idempotency
from casenotes.core.text import settle
from casenotes.entrypoints.http.bodies import Body

IDEMPOTENCY_KEY = "Idempotency-Key"
MAX_KEY = 255

_SESSION_ID = ("sessionId", "Id", "id", "ID")
_QUESTION = ("question", "Question", "QUESTION")


def optional_text(body: Body, *names: str) -> str | None:
    """The text under the first of these names that is there and not null. Raises ``InvalidInput``."""
    for name in names:
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise InvalidInput(names[0], "must be a string")
        return value
    return None


def session_id_or_none(body: Body) -> str | None:
    """The session id of a body; ``None`` when it is absent, null or blank."""
    given = optional_text(body, *_SESSION_ID)
    return None if given is None or not given.strip() else identifier("sessionId", given)


def session_id(body: Body) -> str:
    """The session id of a body that must have one."""
    given = session_id_or_none(body)
    if given is None:
        raise InvalidInput("sessionId", "must not be blank")
    return given


def run_id_or_none(body: Body) -> str | None:
    """The run id of a body; null means omitted, blank is refused."""
    given = optional_text(body, "runId")
    return None if given is None else identifier("runId", given)


def identifier(name: str, given: str) -> str:
    """An id that may be looked up: not blank, and of characters that any store can hold."""
    if not given.strip():
        raise InvalidInput(name, "must not be blank")
    if settle(given) != given:
        raise InvalidInput(name, "must not hold NUL or a lone surrogate")
    return given


def question(body: Body) -> str:
    """The question of a body."""
    return rules.check_question(next((body[name] for name in _QUESTION if body.get(name) is not None), ""))


def path_session_id(request: web.Request) -> str:
    """The session id of the path, percent-decoded once."""
    return identifier("sessionId", request.match_info["sessionId"])


def query_identifier(request: web.Request, name: str) -> str | None:
    """An id of the query string; ``None`` when it is absent, refused when it is blank."""
    given = request.query.get(name)
    return None if given is None else identifier(name, given)


def query_limit(request: web.Request) -> int:
    """The page size of the query string."""
    given = request.query.get("limit")
    if given is None:
        return DEFAULT_LIMIT
    if not given.isascii() or not given.isdigit() or not 1 <= int(given[:9]) <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be a whole number from 1 to {MAX_LIMIT}")
    return int(given)


def query_search(request: web.Request) -> str | None:
    """The words to look for; ``None`` when they are absent or blank."""
    given = settle(request.query.get("query", ""))
    return given if given.strip() else None


def query_case_id(request: web.Request) -> int | None:
    """The case before which a page begins."""
    given = request.query.get("before")
    if given is None:
        return None
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise InvalidInput("before", "must be a case id")
    return int(given)


def idempotency(request: web.Request, canonical: Mapping[str, object]) -> Idempotency | None:
    """The request's idempotency key with the digest of ``canonical``: what the request asks for, in one form."""
    given = request.headers.getall(IDEMPOTENCY_KEY, [])
    if not given:
        return None
    key = given[0]
    if len(given) > 1 or not 1 <= len(key) <= MAX_KEY or not key.isascii() or not key.isprintable():
        raise InvalidInput(IDEMPOTENCY_KEY, f"must be one key of 1 to {MAX_KEY} printable ASCII characters")
    text = json.dumps(canonical, sort_keys=True)
    return Idempotency(key, hashlib.sha256(text.encode()).hexdigest())
