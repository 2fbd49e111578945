"""``POST /api/chat`` and ``POST /api/chat_stream``: a question, answered at once or as it is written."""

from __future__ import annotations

from aiohttp import web

from casenotes.core import rules
from casenotes.core.service.stream import Execution, Order
from casenotes.entrypoints.http import fields, shapes
from casenotes.entrypoints.http.bodies import read_object
from casenotes.entrypoints.http.envelope import success
from casenotes.entrypoints.http.keys import SERVICE
from casenotes.entrypoints.http.streaming import stream


async def chat(request: web.Request) -> web.Response:
    """Answer once the run has ended: 200 whether it succeeded or failed. Nobody's leaving ends the run."""
    execution = await _submit(request)
    outcome = await execution.outcome()
    return success(shapes.answered(outcome.run))


async def chat_stream(request: web.Request) -> web.StreamResponse:
    """Answer with the run's events as they come."""
    return await stream(request, await _submit(request))


async def _submit(request: web.Request) -> Execution:
    """The execution of the question in this request, its run stored. Raises ``InvalidInput`` before anything is."""
    service = request.app[SERVICE]
    body = await read_object(request)
    session_id, question = fields.session_id_or_none(body), fields.question(body)
    requested = fields.optional_text(body, "flow")
    requested = "auto" if requested is None else requested
    asked = {"of": "chat", "sessionId": session_id, "question": question, "flow": requested}
    order = Order(
        session_id=session_id or f"chat-{service.new_id()}",
        question=question,
        flow=rules.route(requested, question),
        idempotency=fields.idempotency(request, asked),
    )
    return await service.executions.submit(order)
