"""Evidence of running systems: metrics, alerts, logs and runbooks as they are now."""

from casenotes.adapters.evidence.live.alerts import AlertmanagerSource, PrometheusAlertsSource
from casenotes.adapters.evidence.live.clock import TimeSource
from casenotes.adapters.evidence.live.log_folder import LogFolderSource
from casenotes.adapters.evidence.live.loki import LokiSource
from casenotes.adapters.evidence.live.prometheus import PrometheusSource
from casenotes.adapters.evidence.live.runbook_folder import RunbookFolderSource
from casenotes.adapters.evidence.live.upstream import Upstream

__all__ = [
    "AlertmanagerSource",
    "LogFolderSource",
    "LokiSource",
    "PrometheusAlertsSource",
    "PrometheusSource",
    "RunbookFolderSource",
    "TimeSource",
    "Upstream",
]
