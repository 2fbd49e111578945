"""The one place where an error becomes an answer."""

from __future__ import annotations

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from casenotes.core.errors import (
    CasenotesError,
    ContextUnavailable,
    IdempotencyConflict,
    InvalidInput,
    LedgerUnavailable,
    NotFound,
    SchemaOutOfDate,
    ShuttingDown,
    TooManyRunning,
)
from casenotes.entrypoints.ambient import new_id
from casenotes.entrypoints.http.bodies import LIMIT_BYTES
from casenotes.entrypoints.http.envelope import failure

RETRY_AFTER_SECONDS = 2

_STATUS: tuple[tuple[type[CasenotesError], int], ...] = (
    (InvalidInput, 400),
    (NotFound, 404),
    (IdempotencyConflict, 409),
    (TooManyRunning, 503),
    (ShuttingDown, 503),
    (LedgerUnavailable, 503),
    (ContextUnavailable, 503),
    (SchemaOutOfDate, 503),
)

_OF_HTTP = {
    404: "there is no such path",
    405: "this path does not answer this method",
    413: f"the body must have at most {LIMIT_BYTES:,} bytes",
    415: "the body must be application/json in UTF-8",
    417: "this expectation cannot be met",
}


@web.middleware
async def errors_answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer what a handler raises, in the envelope. What nobody foresaw is logged, and answered without its words."""
    try:
        return await handler(request)
    except CasenotesError as error:
        return _foreseen(request, error)
    except web.HTTPException as error:
        return of_http(error)
    except Exception as fault:
        return unforeseen(request, fault)


def _foreseen(request: web.Request, error: CasenotesError) -> web.Response:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), None)
    if status is None:
        return unforeseen(request, error)
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)} if status == 503 else None
    return failure(status, str(error), headers=headers)


def of_http(error: web.HTTPException) -> web.StreamResponse:
    """The envelope of an error that aiohttp raised. Raises it again where it is none (a redirect)."""
    if error.status < 400:
        raise error
    allow = error.headers.get("Allow")
    headers = None if allow is None else {"Allow": allow}
    return failure(error.status, _OF_HTTP.get(error.status, error.reason), headers=headers)


def unforeseen(request: web.BaseRequest, fault: BaseException | None) -> web.Response:
    """Log the fault under a request id, and answer with nothing but that."""
    request_id = new_id()
    structlog.get_logger("casenotes.http").error(
        "fault", request_id=request_id, method=request.method, path=request.path, exc_info=fault
    )
    return failure(
        500, f"internal error; the log tells more under request {request_id}", {"requestId": request_id}
    )
