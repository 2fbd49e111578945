"""Tells logs and metrics what becomes of runs."""

from __future__ import annotations

import structlog
from attrs import frozen

from casenotes.core.model import DiagnosisRun
from casenotes.core.words import RunStatus
from casenotes.entrypoints.http.metrics import Metrics


@frozen
class RunReporter:
    """A ``RunObserver``: one log line and one count for each thing that happens."""

    metrics: Metrics

    def started(self, run: DiagnosisRun) -> None:
        self.metrics.runs_started.labels(run.agent_flow).inc()
        _log_of(run.session_id, run.run_id).info("run started", flow=str(run.agent_flow))

    def ended(self, run: DiagnosisRun) -> None:
        self.metrics.runs_ended.labels(run.agent_flow, run.status).inc()
        log = _log_of(run.session_id, run.run_id).bind(
            flow=str(run.agent_flow), status=str(run.status), digest=run.digest
        )
        if run.duration is not None:
            seconds = run.duration.total_seconds()
            self.metrics.run_seconds.labels(run.agent_flow).observe(seconds)
            log = log.bind(seconds=round(seconds, 3))
        if run.status is RunStatus.FAILED:
            log.warning("run failed", reason=run.error_message)
        else:
            log.info("run ended", degraded=run.degraded, steps=run.step_count, tool_calls=run.tool_call_count)

    def faulted(self, session_id: str, run_id: str | None, what: str, fault: BaseException) -> None:
        self.metrics.faults.inc()
        _log_of(session_id, run_id).error("fault", doing=what, exc_info=fault)


def _log_of(session_id: str, run_id: str | None) -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("casenotes.runs")
    return log.bind(session_id=session_id, run_id=run_id)
