"""Recorded logs: text or JSON lines, searched by file or by service."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from attrs import frozen

from casenotes.adapters.evidence.files import TextFile
from casenotes.adapters.evidence.recorded import unknown_tool
from casenotes.core.text import Json
from casenotes.ports.agent import Lookup, Observation, ObservationStatus

LOGS_TOOL = "logs.search"

MAX_RESULT_CHARS = 48 * 1024
"""A longer answer keeps its latest lines and says how many it leaves out; ``contains`` reaches those."""

_SERVICE_KEYS = ("service", "app", "component")


@frozen
class LogLine:
    """One line, where it was found, and which service wrote it when the line says so."""

    file: str
    service: str | None
    text: str


class LogsSource:
    """``logs.search {"file" or "service": name, "contains"?: text}`` answers with the lines, as they were written.

    ``contains`` is looked for case aside. A service's lines are those that name it in a JSON field.
    """

    tools = frozenset({LOGS_TOOL})

    def __init__(self, lines: Sequence[LogLine]) -> None:
        self._lines = tuple(lines)

    async def offer(self) -> Sequence[Lookup]:
        """One lookup a service, and one for each file that has lines of no named service."""
        services = dict.fromkeys(line.service for line in self._lines if line.service is not None)
        files = dict.fromkeys(line.file for line in self._lines if line.service is None)
        return tuple(
            [Lookup(LOGS_TOOL, {"service": service}) for service in services]
            + [Lookup(LOGS_TOOL, {"file": file}) for file in files]
        )

    async def look(self, lookup: Lookup) -> Observation:
        """The lines; none is "no data"."""
        if lookup.tool != LOGS_TOOL:
            return unknown_tool(lookup)
        wanted = lookup.arguments
        if not wanted.keys() <= {"file", "service", "contains"} or not wanted.keys() & {"file", "service"}:
            return Observation(ObservationStatus.ERROR, error_message="logs.search needs a file or a service")
        found = [line.text for line in self._lines if _matches(line, wanted)]
        if not found:
            return Observation(ObservationStatus.NO_DATA)
        text, earlier = latest_lines(found)
        said = f"{earlier} earlier lines left out for their size" if earlier else None
        return Observation(ObservationStatus.SUCCESS, text, left_out=said)


def _matches(line: LogLine, wanted: dict[str, Json]) -> bool:
    contains = wanted.get("contains")
    return (
        wanted.get("file", line.file) == line.file
        and wanted.get("service", line.service) == line.service
        and (not isinstance(contains, str) or contains.casefold() in line.text.casefold())
    )


def latest_lines(lines: Sequence[str]) -> tuple[str, int]:
    """The last lines, as many as an answer holds, after a line that tells how many it leaves out; and how many."""
    room = MAX_RESULT_CHARS
    start = len(lines)
    while start and room >= len(lines[start - 1]) + 1:
        start -= 1
        room -= len(lines[start]) + 1
    start = min(start, len(lines) - 1)
    kept = "\n".join(lines[start:])[-MAX_RESULT_CHARS:]
    return (f"({start} earlier lines left out)\n{kept}" if start else kept), start


def log_lines(files: Iterable[TextFile]) -> list[LogLine]:
    """The lines of these files, blank ones left out, in their order."""
    return [
        LogLine(file.stem, _service(line), line)
        for file in files
        for line in file.text.splitlines()
        if line.strip()
    ]


def _service(line: str) -> str | None:
    if not line.startswith("{"):
        return None
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    named = (fields.get(key) for key in _SERVICE_KEYS) if isinstance(fields, dict) else ()
    return next((name for name in named if isinstance(name, str) and name), None)
