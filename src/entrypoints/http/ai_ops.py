"""``POST /api/ai_ops``: a report on the firing alerts, streamed."""

from __future__ import annotations

from aiohttp import web

from casenotes.core import rules
from casenotes.core.service.stream import Order
from casenotes.core.words import AgentFlow
from casenotes.entrypoints.http import fields
from casenotes.entrypoints.http.bodies import read_object
from casenotes.entrypoints.http.keys import SERVICE
from casenotes.entrypoints.http.streaming import stream

QUESTION = "Diagnose the firing alerts"


async def ai_ops(request: web.Request) -> web.StreamResponse:
    """Answer with the run's events: on the alerts of the body, or those of the configured source."""
    service = request.app[SERVICE]
    body = await read_object(request, optional=True)
    session_id, alerts = fields.session_id_or_none(body), rules.check_alerts(body.get("alerts"))
    order = Order(
        session_id=session_id or f"aiops-{service.new_id()}",
        question=QUESTION,
        flow=AgentFlow.AI_OPS,
        alerts=alerts,
        idempotency=fields.idempotency(request, {"of": "ai_ops", "sessionId": session_id, "alerts": alerts}),
    )
    return await stream(request, await service.executions.submit(order))
