"""Tells logs and metrics what becomes of runs."""

from __future__ import annotations

import logging

import structlog
from attrs import frozen

from casenotes.core.model import DiagnosisRun
from casenotes.core.words import RunStatus
from casenotes.entrypoints.http.logs import tell
from casenotes.entrypoints.http.metrics import Metrics

_RUNS = logging.getLogger("casenotes.runs")


@frozen
class RunReporter:
    """A ``RunObserver``: one log line and one count for each thing that happens."""

    metrics: Metrics

    def started(self, run: DiagnosisRun) -> None:
        self.metrics.runs_started.labels(run.agent_flow).inc()
        tell(_RUNS, logging.INFO, "run started", **_named(run))

    def ended(self, run: DiagnosisRun) -> None:
        self.metrics.runs_ended.labels(run.agent_flow, run.status).inc()
        told = _named(run) | {"status": str(run.status), "digest": run.digest}
        if run.duration is not None:
            seconds = run.duration.total_seconds()
            self.metrics.run_seconds.labels(run.agent_flow).observe(seconds)
            told["seconds"] = round(seconds, 3)
        if run.status is RunStatus.FAILED:
            tell(_RUNS, logging.WARNING, "run failed", **told, reason=run.error_message)
        else:
            told |= {"degraded": run.degraded, "steps": run.step_count, "tool_calls": run.tool_call_count}
            tell(_RUNS, logging.INFO, "run ended", **told)

    def faulted(self, session_id: str, run_id: str | None, what: str, fault: BaseException) -> None:
        self.metrics.faults.inc()
        log: structlog.stdlib.BoundLogger = structlog.get_logger(_RUNS.name)
        log.error("fault", session_id=session_id, run_id=run_id, doing=what, exc_info=fault)


def _named(run: DiagnosisRun) -> dict[str, object]:
    return {"session_id": run.session_id, "run_id": run.run_id, "flow": str(run.agent_flow)}
