"""Loki: log lines by ``query_range``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from casenotes.adapters.evidence.live.mentions import earliest, named_in, things_of
from casenotes.adapters.evidence.live.prometheus import utc_now
from casenotes.adapters.evidence.live.promql import matcher, quoted
from casenotes.adapters.evidence.live.upstream import Unanswered, Upstream, data_of
from casenotes.adapters.evidence.live.windows import WrongArgument, minutes_since, window_of
from casenotes.adapters.evidence.logs import LOGS_TOOL, latest_lines
from casenotes.adapters.evidence.recorded import unknown_tool
from casenotes.adapters.evidence.reducing import reduced_matrix
from casenotes.core.text import Json, JsonObject, settle
from casenotes.ports.agent import About, Lookup, Observation, ObservationStatus
from casenotes.ports.ambient import Clock

MAX_LINES = 1000
"""Lines of one answer at the most, the latest ones; Loki itself refuses more than 5000."""

MAX_THINGS = 4

NAME = "Loki"

_LABELS = (
    "service_name",
    "service",
    "app",
    "deployment",
    "container",
    "pod",
    "job",
    "unit",
    "instance",
    "host",
)
_FAULTS = "(?i)error|exception|fatal|panic|fail|timeout|refused|denied"
_HAS_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}")


class LokiSource:
    """``logs.search {"query": LogQL, "minutes"?, "end"?, "contains"?}`` answers with the lines, the earliest first.

    ``contains`` is looked for case aside. A line that tells no time of its own gets the one it was received at.
    ``service`` says whose lines they are; it stands in the record and is not sent. A query for numbers is answered
    with its matrix.
    """

    tools = frozenset({LOGS_TOOL})

    def __init__(self, upstream: Upstream, now: Clock = utc_now) -> None:
        self._upstream = upstream
        self._now = now

    async def offer(self) -> Sequence[Lookup]:
        """Nothing: without knowing what a run is about, no lines are more worth reading than others."""
        return ()

    async def offer_for(self, about: About) -> Sequence[Lookup]:
        """The lines of what the alerts and the question name: those that tell of faults, and all of them."""
        values = dict.fromkeys(value for alert in about.alerts for _, value in things_of(alert))
        minutes = minutes_since(earliest(about.alerts), self._now())
        try:
            there = set(await self._list("labels"))
            labels = [label for label in _LABELS if label in there]
            lists = await asyncio.gather(*(self._list(f"label/{label}/values") for label in labels))
        except Unanswered:  # the lookup will say why
            return (Lookup(LOGS_TOOL, {"query": f'{{{_LABELS[0]}=~".+"}} |~ "{_FAULTS}"'}),)
        streams: dict[str, str] = {}
        for label, known in zip(labels, lists, strict=True):
            for value in (*named_in(about.question, known), *(value for value in values if value in known)):
                if value not in streams and len(streams) < MAX_THINGS:
                    streams[value] = "{" + matcher(label, value) + "}"
        return tuple(
            Lookup(LOGS_TOOL, {"service": value, "query": query, "minutes": minutes})
            for value, stream in streams.items()
            for query in (f'{stream} |~ "{_FAULTS}"', stream)
        )

    async def look(self, lookup: Lookup) -> Observation:
        """The lines; none is ``no_data``."""
        if lookup.tool != LOGS_TOOL:
            return unknown_tool(lookup)
        query = lookup.arguments.get("query")
        if not isinstance(query, str):
            return Observation(ObservationStatus.NO_DATA)
        contains = lookup.arguments.get("contains")
        if isinstance(contains, str) and contains:
            query += f' |~ "(?i){quoted(re.escape(contains))}"'
        try:
            window = window_of(lookup.arguments, self._now())
            fields = [
                ("query", query),
                ("start", f"{window.start:.3f}"),
                ("end", f"{window.end:.3f}"),
                ("limit", str(MAX_LINES)),
                ("direction", "backward"),
            ]
            data = data_of(await self._upstream.get("loki/api/v1/query_range", fields), NAME)
        except WrongArgument as wrong:
            return Observation(ObservationStatus.ERROR, error_message=str(wrong))
        except Unanswered as fault:
            return Observation(ObservationStatus.ERROR, error_message=fault.words)
        return _observed(data)

    async def close(self) -> None:
        """Close the connections."""
        await self._upstream.close()

    async def _list(self, path: str) -> list[str]:
        answer = await self._upstream.get(f"loki/api/v1/{path}")
        if isinstance(answer, dict) and answer.get("status") == "success" and "data" not in answer:
            return []  # so it answers when it holds none
        data = data_of(answer, NAME)
        return [value for value in data if isinstance(value, str)] if isinstance(data, list) else []


def _observed(data: Json) -> Observation:
    match data:
        case {"resultType": "streams", "result": list() as streams}:
            lines = _lines(streams)
        case {"resultType": "matrix", "result": list() as items}:
            kept, said = reduced_matrix([item for item in items if isinstance(item, dict)])
            matrix: JsonObject = {"status": "success", "data": {"resultType": "matrix", "result": list(kept)}}
            status = ObservationStatus.SUCCESS if kept else ObservationStatus.NO_DATA
            return Observation(status, matrix, left_out="; ".join(said) or None)
        case _:
            return Observation(ObservationStatus.ERROR, error_message=f"{NAME} answered JSON of another form")
    if not lines:
        return Observation(ObservationStatus.NO_DATA)
    text, out = latest_lines(lines)
    said = [f"{out} earlier lines left out for their size"] if out else []
    if len(lines) >= MAX_LINES:
        said.append(f"only the latest {MAX_LINES} lines were asked for")
    return Observation(ObservationStatus.SUCCESS, text, left_out="; ".join(said) or None)


def _lines(streams: Sequence[Json]) -> list[str]:
    """The lines of all streams in the order of their times."""
    found: list[tuple[int, str]] = []
    for stream in streams:
        values = stream.get("values") if isinstance(stream, dict) else None
        for value in values if isinstance(values, list) else []:
            match value:
                case [str() as nanoseconds, str() as line, *_] if nanoseconds.isdecimal():
                    found.append((int(nanoseconds[:25]), _timed(int(nanoseconds[:25]), line)))
    return [line for _, line in sorted(found, key=lambda each: each[0])]


def _timed(nanoseconds: int, line: str) -> str:
    text = settle(line).rstrip("\r\n")
    if text.startswith("{") or _HAS_TIME.search(text[:80]):
        return text
    try:
        time = datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return text
    return f"{time.isoformat(timespec='milliseconds').replace('+00:00', 'Z')} {text}"
