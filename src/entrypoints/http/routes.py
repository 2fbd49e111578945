"""Every path of the service."""

from __future__ import annotations

from aiohttp import web

from casenotes.entrypoints.http import (
    ai_ops,
    alerts,
    cases,
    chat,
    diagnosis,
    feedback,
    health,
    pages,
    sessions,
)


def routes() -> list[web.RouteDef]:
    """The routes of the API, the probes and the pages."""
    return [
        web.post("/api/chat", chat.chat),
        web.post("/api/chat_stream", chat.chat_stream),
        web.post("/api/chat/clear", sessions.clear_context),
        web.get("/api/chat/session/{sessionId}", sessions.show_session),
        web.delete("/api/chat/session/{sessionId}", sessions.erase_session),
        web.get("/api/chat/session/{sessionId}/runs", sessions.list_runs),
        web.get("/api/sessions", sessions.list_sessions),
        web.post("/api/ai_ops", ai_ops.ai_ops),
        web.post("/api/alerts/alertmanager", alerts.alertmanager),
        web.get("/api/diagnosis/{sessionId}/trace", diagnosis.trace),
        web.post("/api/feedback", feedback.give_feedback),
        web.get("/api/cases", cases.list_cases),
        web.get("/healthz", health.alive),
        web.get("/readyz", health.ready),
        web.get("/metrics", health.metrics),
        *pages.routes(),
    ]


def is_guarded(request: web.Request) -> bool:
    """Whether the path is for callers with a key, where keys are set: the API and the metrics."""
    return request.path in ("/api", "/metrics") or request.path.startswith("/api/")


def is_probe(request: web.Request) -> bool:
    """Whether the path is one by which whoever runs the service asks how it is."""
    return request.path in ("/healthz", "/readyz")
