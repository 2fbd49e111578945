"""The alerts that fire: from Alertmanager, or from Prometheus where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from casenotes.adapters.evidence.live.upstream import Unanswered, Upstream, data_of
from casenotes.adapters.evidence.recorded import unknown_tool
from casenotes.core.text import Json, JsonObject, fold, json_text
from casenotes.ports.agent import ALERTS_TOOL, Lookup, Observation, ObservationStatus

MAX_BYTES = 48 * 1024
"""The alerts' JSON text at the most; the record keeps 64 KiB whole, and a report is made from whole alerts only."""

_MAX_TEXT = 400
_NEVER = "0001-01-01T00:00:00Z"


class AlertmanagerSource:
    """``alerts.firing`` answers with the alerts of Alertmanager's API v2, silenced and inhibited ones included."""

    tools = frozenset({ALERTS_TOOL})

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def offer(self) -> Sequence[Lookup]:
        """The one lookup."""
        return (Lookup(ALERTS_TOOL),)

    async def look(self, lookup: Lookup) -> Observation:
        """The alerts; an empty list is an answer too: nothing fires."""
        if lookup.tool != ALERTS_TOOL:
            return unknown_tool(lookup)
        try:
            answer = await self._upstream.get("api/v2/alerts")
        except Unanswered as fault:
            return Observation(ObservationStatus.ERROR, error_message=fault.words)
        if not isinstance(answer, list):
            words = "Alertmanager answered JSON of another form"
            return Observation(ObservationStatus.ERROR, error_message=words)
        return observed(_v2(alert) for alert in answer if isinstance(alert, dict))

    async def close(self) -> None:
        """Close the connections."""
        await self._upstream.close()


class PrometheusAlertsSource:
    """``alerts.firing`` answers with the alerts that Prometheus itself holds to fire, in Alertmanager's form.

    Prometheus knows neither silences nor inhibitions: each of its firing alerts is active.
    """

    tools = frozenset({ALERTS_TOOL})

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def offer(self) -> Sequence[Lookup]:
        """The one lookup."""
        return (Lookup(ALERTS_TOOL),)

    async def look(self, lookup: Lookup) -> Observation:
        """The alerts; those that are pending only do not fire."""
        if lookup.tool != ALERTS_TOOL:
            return unknown_tool(lookup)
        try:
            data = data_of(await self._upstream.get("api/v1/alerts"), "Prometheus")
            alerts = data.get("alerts") if isinstance(data, dict) else None
            if not isinstance(alerts, list):
                raise Unanswered("Prometheus answered JSON of another form")
        except Unanswered as fault:
            return Observation(ObservationStatus.ERROR, error_message=fault.words)
        held = (alert for alert in alerts if isinstance(alert, dict) and alert.get("state") == "firing")
        return observed(_as_v2(alert) for alert in held)

    async def close(self) -> None:
        """Close the connections."""
        await self._upstream.close()


def observed(alerts: Iterable[JsonObject]) -> Observation:
    """The alerts in a stable order, as many as are kept whole: one of each name before a second of any."""
    ordered = sorted(alerts, key=_order)
    turn: dict[str, int] = {}
    ranked: list[tuple[int, int, JsonObject]] = []
    for at, alert in enumerate(ordered):
        name = _label(alert, "alertname")
        turn[name] = turn.get(name, 0) + 1
        ranked.append((turn[name], at, alert))
    kept: list[tuple[int, JsonObject]] = []
    room = MAX_BYTES
    for _, at, alert in sorted(ranked, key=lambda each: each[:2]):
        room -= len(json_text(alert).encode()) + 1
        if room < 0:
            break
        kept.append((at, alert))
    shown: list[Json] = [alert for _, alert in sorted(kept, key=lambda each: each[0])]
    missing = len(ordered) - len(shown)
    left_out = f"{missing} of {len(ordered)} alerts left out for their size" if missing else None
    return Observation(ObservationStatus.SUCCESS, shown, left_out=left_out)


def _order(alert: JsonObject) -> tuple[bool, str, str]:
    """Those that fire first, then by their labels: Alertmanager's own order is by a hash."""
    status = alert.get("status")
    quiet = isinstance(status, dict) and status.get("state") == "suppressed"
    return quiet, _label(alert, "alertname"), json_text(alert.get("labels"))


def _label(alert: JsonObject, name: str) -> str:
    labels = alert.get("labels")
    value = labels.get(name) if isinstance(labels, dict) else None
    return value if isinstance(value, str) else ""


def _v2(alert: JsonObject) -> JsonObject:
    """What a report needs of an alert of Alertmanager."""
    kept: JsonObject = {
        "labels": _texts(alert.get("labels")),
        "annotations": _texts(alert.get("annotations")),
    }
    for name in ("startsAt", "endsAt", "status", "fingerprint"):
        if name in alert:
            kept[name] = alert[name]
    return kept


def _as_v2(alert: JsonObject) -> JsonObject:
    kept: JsonObject = {
        "labels": _texts(alert.get("labels")),
        "annotations": _texts(alert.get("annotations")),
        "endsAt": _NEVER,
        "status": {"state": "active", "silencedBy": [], "inhibitedBy": []},
    }
    for name, own in (("startsAt", "activeAt"), ("value", "value")):
        if isinstance(alert.get(own), str):
            kept[name] = alert[own]
    return kept


def _texts(value: Json) -> JsonObject:
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {name: fold(text, _MAX_TEXT) for name, text in pairs if isinstance(text, str)}
