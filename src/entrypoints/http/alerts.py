"""``POST /api/alerts/alertmanager``: Alertmanager's webhook; a firing group is diagnosed in the background."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from aiohttp import web

from casenotes.core import rules
from casenotes.core.errors import InvalidInput
from casenotes.core.service.stream import Order
from casenotes.core.text import clean
from casenotes.core.words import AgentFlow
from casenotes.entrypoints.http import fields, shapes
from casenotes.entrypoints.http.ai_ops import QUESTION
from casenotes.entrypoints.http.bodies import Body, read_object
from casenotes.entrypoints.http.envelope import success
from casenotes.entrypoints.http.keys import SERVICE

VERSION = "4"
FIRING = "firing"


async def alertmanager(request: web.Request) -> web.Response:
    """202 with the run that was started for the body's group; with none for a resolved group."""
    body = await read_object(request)
    group_key, alerts = _group(body)
    if not alerts:
        return success([], status=202)
    execution = await request.app[SERVICE].executions.submit(
        Order(session_of(group_key), QUESTION, AgentFlow.AI_OPS, alerts=alerts)
    )
    run = execution.run
    return success([{**shapes.started(run), "groupKey": clean(group_key)}], status=202)


def session_of(group_key: str) -> str:
    """The session of an alert group: the same whenever it fires."""
    return f"alerts-{hashlib.sha256(group_key.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _group(body: Body) -> tuple[str, tuple[Mapping[str, object], ...]]:
    """The key of the body's group and its firing alerts, none if it is resolved. Raises ``InvalidInput``."""
    version, status = body.get("version"), body.get("status")
    if version != VERSION:
        raise InvalidInput("version", f"must be {VERSION!r}")
    if status not in (FIRING, "resolved"):
        raise InvalidInput("status", "must be 'firing' or 'resolved'")
    group_key = fields.optional_text(body, "groupKey")
    if group_key is None or not group_key.strip():
        raise InvalidInput("groupKey", "must not be blank")
    alerts = rules.check_alerts(body.get("alerts")) or ()
    if status != FIRING:
        return group_key, ()
    return group_key, tuple(_as_v2(alert) for alert in alerts if alert.get("status", FIRING) == FIRING)


def _as_v2(alert: Mapping[str, object]) -> Mapping[str, object]:
    """A webhook's alert as Alertmanager's API v2 shows it: there the status is an object."""
    return {**alert, "status": {"state": "active", "silencedBy": [], "inhibitedBy": []}}
