"""What the application holds for its handlers."""

from __future__ import annotations

from aiohttp import web

from casenotes.core.service.service import Service
from casenotes.entrypoints.http.metrics import Metrics

SERVICE = web.AppKey("service", Service)
METRICS = web.AppKey("metrics", Metrics)
