"""Prometheus: instant and range queries, and the lookups worth making for an alert or a question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from casenotes.adapters.evidence.live.discovery import Discovery
from casenotes.adapters.evidence.live.upstream import Unanswered, Upstream, data_of, warnings_of
from casenotes.adapters.evidence.live.windows import Window, WrongArgument, window_of
from casenotes.adapters.evidence.metrics import METRICS_TOOL
from casenotes.adapters.evidence.recorded import unknown_tool
from casenotes.adapters.evidence.reducing import reduced_matrix, reduced_vector
from casenotes.core.text import Json, JsonObject
from casenotes.ports.agent import About, Lookup, Observation, ObservationStatus
from casenotes.ports.ambient import Clock

INSTANT_TOOL = "metrics.query"

NAME = "Prometheus"


def utc_now() -> datetime:
    """The time now."""
    return datetime.now(UTC)


class PrometheusSource:
    """``metrics.query {"query"}`` answers with the values now, ``metrics.query_range {"query", "minutes"?, "end"?,
    "step"?}`` with those of the last hour or of another window, both as Prometheus gives them.

    ``{"metric": name}`` without a query asks for that metric. Any further argument (``metric``, ``alertname``,
    ``pod``, ...) says what the answer is of; it stands in the record and is not sent.
    """

    tools = frozenset({INSTANT_TOOL, METRICS_TOOL})

    def __init__(self, upstream: Upstream, now: Clock = utc_now) -> None:
        self._upstream = upstream
        self._now = now
        self._discovery = Discovery(upstream, now)

    async def offer(self) -> Sequence[Lookup]:
        """Which targets cannot be scraped; it also shows whether Prometheus answers at all."""
        return (Lookup(INSTANT_TOOL, {"metric": "up", "query": "sort(up)"}),)

    async def offer_for(self, about: About) -> Sequence[Lookup]:
        """The expressions of the alerts' own rules, now and over time; the metrics of what is asked about."""
        rules, found = await asyncio.gather(self._discovery.rules(about), self._discovery.signals(about))
        expressions = [
            lookup
            for rule in rules
            for lookup in (
                Lookup(INSTANT_TOOL, {"alertname": rule.name, "query": rule.query}),
                Lookup(
                    METRICS_TOOL,
                    {
                        "alertname": rule.name,
                        "metric": rule.metric,
                        "query": rule.measured,
                        "minutes": rule.minutes,
                    },
                ),
            )
        ]
        signals = [
            Lookup(METRICS_TOOL, {"metric": signal.metric, thing.label: thing.value, "query": signal.query})
            for thing, signal in found
            if not any(signal.metric in rule.query for rule in rules)
        ]
        return (*expressions, *signals)

    async def look(self, lookup: Lookup) -> Observation:
        """The values. No series is ``no_data``; a server that refuses, fails or is silent is an ``error``."""
        if lookup.tool not in self.tools:
            return unknown_tool(lookup)
        query = lookup.arguments.get("query", lookup.arguments.get("metric"))
        if not isinstance(query, str) or not query.strip():
            return _error("a query is needed")
        try:
            if lookup.tool == INSTANT_TOOL:
                return await self._now_of(query)
            return await self._range_of(query, window_of(lookup.arguments, self._now()))
        except WrongArgument as wrong:
            return _error(str(wrong))
        except Unanswered as fault:
            return _error(fault.words)

    async def close(self) -> None:
        """Close the connections."""
        await self._upstream.close()

    async def _now_of(self, query: str) -> Observation:
        answer = await self._upstream.post("api/v1/query", [("query", query)])
        kind, series, data = _result(data_of(answer, NAME))
        if kind != "vector":  # a scalar or a text: one value, without labels
            return Observation(ObservationStatus.SUCCESS, {"status": "success", "data": data})
        kept, said = reduced_vector(series)
        return _observed("vector", kept, said, {"warnings": warnings_of(answer)})

    async def _range_of(self, query: str, window: Window) -> Observation:
        form = [
            ("query", query),
            ("start", f"{window.start:.3f}"),
            ("end", f"{window.end:.3f}"),
            ("step", f"{window.step:g}"),
        ]
        answer = await self._upstream.post("api/v1/query_range", form)
        kind, series, _ = _result(data_of(answer, NAME))
        if kind != "matrix":
            raise Unanswered(f"{NAME} answered a range with something else")
        kept, said = reduced_matrix(series)
        asked: JsonObject = {
            "start": _moment(window.start),
            "end": _moment(window.end),
            "step": window.step,
            "warnings": warnings_of(answer),
        }
        return _observed("matrix", kept, [*window.said, *said], asked)


def _observed(kind: str, series: list[JsonObject], said: Sequence[str], more: JsonObject) -> Observation:
    left_out = "; ".join(said) or None
    result: JsonObject = {
        "status": "success",
        "data": {"resultType": kind, "result": list(series)},
        **{name: value for name, value in more.items() if value != []},
    }
    if left_out:
        result["leftOut"] = left_out
    status = ObservationStatus.SUCCESS if series else ObservationStatus.NO_DATA
    return Observation(status, result, left_out=left_out)


def _result(data: Json) -> tuple[str, list[JsonObject], Json]:
    """The kind of an answer's data, and its series if it has any. Raises ``Unanswered``."""
    match data:
        case {"resultType": ("vector" | "matrix") as kind, "result": list() as items}:
            return str(kind), [item for item in items if isinstance(item, dict)], data
        case {"resultType": ("scalar" | "string") as kind, "result": list()}:
            return str(kind), [], data
    raise Unanswered(f"{NAME} answered JSON of another form")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _error(words: str) -> Observation:
    return Observation(ObservationStatus.ERROR, error_message=words)
