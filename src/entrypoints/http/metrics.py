"""The numbers that Prometheus scrapes. Each application has a registry of its own."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

CONTENT_TYPE = CONTENT_TYPE_LATEST

_RUN_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@frozen
class Metrics:
    """Counts of runs and requests. Labels come from closed sets: no id, no path of a client's making."""

    registry: CollectorRegistry
    runs_started: Counter
    runs_ended: Counter
    run_seconds: Histogram
    faults: Counter
    requests: Counter

    @classmethod
    def fresh(cls) -> Metrics:
        registry = CollectorRegistry()
        return cls(
            registry=registry,
            runs_started=Counter("casenotes_runs_started", "Runs started.", ["flow"], registry=registry),
            runs_ended=Counter("casenotes_runs_ended", "Runs ended.", ["flow", "status"], registry=registry),
            run_seconds=Histogram(
                "casenotes_run_duration_seconds",
                "How long runs took.",
                ["flow"],
                buckets=_RUN_SECONDS,
                registry=registry,
            ),
            faults=Counter("casenotes_faults", "Faults of the service itself.", registry=registry),
            requests=Counter(
                "casenotes_http_requests",
                "HTTP requests answered.",
                ["method", "route", "status"],
                registry=registry,
            ),
        )

    def show_running(self, running: Callable[[], int]) -> None:
        """Export how many runs this process executes, asked at each scrape."""
        gauge = Gauge("casenotes_runs_running", "Runs executed by this process now.", registry=self.registry)
        gauge.set_function(running)

    def answered(self, method: str, route: str, status: int) -> None:
        """Count one answered request; ``route`` is the template of its path."""
        self.requests.labels(method if method in _METHODS else "other", route, str(status)).inc()

    def exposition(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)
