"""Alerts as they come in: untrusted, of any shape, read without trust and without failing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum

from attrs import frozen

from casenotes.adapters.agents.findings.logs import parse_time
from casenotes.adapters.agents.findings.names import MACHINE_JOBS
from casenotes.core.text import Json, fold

_MAX_TEXT = 300
_MAX_LABELS = 40

_WORKLOAD_LABELS = (
    "deployment",
    "statefulset",
    "daemonset",
    "job_name",
    "cronjob",
    "service",
    "app",
    "pod",
    "job",
    "container",
    "workload",
    "component",
)
_MACHINE_LABELS = ("node", "nodename", "host", "instance")
_EXPORTERS = frozenset({"kube-state-metrics", "node-exporter", "blackbox-exporter", "kubelet"})
_OWN_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


class AlertState(StrEnum):
    """Whether an alert fires, is held back by a silence or another alert, or is over."""

    FIRING = "firing"
    SUPPRESSED = "suppressed"
    RESOLVED = "resolved"


@frozen
class Alert:
    """What can be read of one alert. Every text is folded to one line and bounded."""

    name: str
    labels: tuple[tuple[str, str], ...]
    description: str
    state: AlertState
    since: datetime | None
    named: bool = True

    def label(self, name: str) -> str:
        """The value of a label; empty when it has none."""
        return dict(self.labels).get(name, "")

    @property
    def namespace(self) -> str:
        """The namespace it is about, when it says so."""
        return self.label("namespace")

    @property
    def subjects(self) -> tuple[str, ...]:
        """The workloads it is about, the most telling label first; without one, the node or instance.

        An alert on an exporter's metrics may carry the exporter's own pod and job as labels; those are left out.
        """
        over_machines = self.label("job") in MACHINE_JOBS and bool(self.label("instance"))
        exporter = self.label("job") if self.label("job") in _EXPORTERS else None
        for names in (_WORKLOAD_LABELS, _MACHINE_LABELS):
            values = (self.label(name) for name in names if not (name == "job" and over_machines))
            found = dict.fromkeys(value for value in values if value and not (exporter and exporter in value))
            if found:
                return tuple(found)
        return ()

    @property
    def words(self) -> frozenset[str]:
        """The words of its name and its description, in lower case."""
        parts = _OWN_WORD.findall(self.name) + re.findall(r"[A-Za-z]+", self.description)
        return frozenset(part.casefold() for part in parts if len(part) > 2)


def read_alerts(value: Json, now: datetime) -> tuple[Alert, ...]:
    """The alerts in a list of any shape; what is no object is passed over.

    ``now`` (aware) tells which ``endsAt`` is past.
    """
    items = value if isinstance(value, list) else []
    return tuple(_alert(item, now) for item in items if isinstance(item, dict))


def _alert(item: dict[str, Json], now: datetime) -> Alert:
    labels = _texts(item.get("labels"))
    annotations = dict(_texts(item.get("annotations")))
    name = dict(labels).get("alertname", "")
    said = (annotations.get(key, "") for key in ("description", "message", "summary"))
    return Alert(
        name=name or "(alert without a name)",
        labels=labels,
        description=next((text for text in said if text), ""),
        state=_state(item, now),
        since=_time(item.get("startsAt")),
        named=bool(name),
    )


def _texts(value: Json) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        return ()
    pairs = list(value.items())[:_MAX_LABELS]
    return tuple(
        (fold(key, 80), fold(text if isinstance(text, str) else str(text), _MAX_TEXT))
        for key, text in pairs
        if text is not None and not isinstance(text, dict | list)
    )


def _state(item: dict[str, Json], now: datetime) -> AlertState:
    ended = _time(item.get("endsAt"))
    if ended is not None and ended.year > 1 and ended <= now:
        return AlertState.RESOLVED
    status = item.get("status")
    state = status.get("state") if isinstance(status, dict) else status
    if state in ("suppressed", "resolved"):
        return AlertState(state)
    return AlertState.FIRING  # a word that is not known must not silence an alert


def _time(value: Json) -> datetime | None:
    time = parse_time(value) if isinstance(value, str) else None
    if time is None or time.year <= 1:
        return None
    try:
        return time.astimezone(UTC)
    except OverflowError:
        return None


def firing(alerts: Sequence[Alert]) -> tuple[Alert, ...]:
    """Those that fire now."""
    return tuple(alert for alert in alerts if alert.state is AlertState.FIRING)
