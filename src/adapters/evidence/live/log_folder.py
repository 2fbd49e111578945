"""A folder of log files: text, JSON lines, and what ``journalctl -o json`` exports, read from the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from attrs import evolve, frozen

from casenotes.adapters.evidence.files import TextFile
from casenotes.adapters.evidence.live.folders import LiveFolder
from casenotes.adapters.evidence.logs import LOGS_TOOL, LogLine, LogsSource, log_lines
from casenotes.adapters.evidence.recorded import unknown_tool
from casenotes.core.text import Json
from casenotes.ports.agent import Lookup, Observation, ObservationStatus

MAX_FILES = 40
"""Files that are read, the latest written first."""

TAIL_BYTES = 1024 * 1024
"""What is read of one file: its end."""

MAX_BYTES = 16 * 1024 * 1024
"""What is read of all files for one lookup."""

_PACKED = (".gz", ".xz", ".zst", ".bz2", ".zip", ".journal")
_PRIORITIES = ("emerg", "alert", "critical", "error", "warning", "notice", "info", "debug")


@frozen
class _Reading:
    lines: tuple[LogLine, ...]
    left_out: tuple[str, ...]


class LogFolderSource:
    """``logs.search {"file" or "service": name, "contains"?: text}`` over the files as they are now.

    A file goes by its name within the folder without its ending, a service by what JSON lines and the journal say.
    """

    tools = frozenset({LOGS_TOOL})

    def __init__(self, folder: Path) -> None:
        self._folder = LiveFolder(folder)

    async def offer(self) -> Sequence[Lookup]:
        """One lookup a service, and one for each file that has lines of no named service."""
        try:
            reading = await asyncio.to_thread(self._read)
        except OSError:
            return (Lookup(LOGS_TOOL, {"file": "*"}),)  # the lookup will say why
        return await LogsSource(reading.lines).offer()

    async def look(self, lookup: Lookup) -> Observation:
        """The lines; none is ``no_data``."""
        if lookup.tool != LOGS_TOOL:
            return unknown_tool(lookup)
        if not lookup.arguments.keys() & {"file", "service"}:
            return Observation(ObservationStatus.NO_DATA)  # a lookup of another source of logs
        try:
            reading = await asyncio.to_thread(self._read)
        except OSError:
            return Observation(ObservationStatus.ERROR, error_message="the log folder cannot be read")
        seen = await LogsSource(reading.lines).look(lookup)
        said = [*filter(None, [seen.left_out]), *reading.left_out]
        return evolve(seen, left_out="; ".join(said) or None)

    def _read(self) -> _Reading:
        files = sorted(self._folder.files(without=_PACKED), key=lambda file: (-file.written, file.name))
        texts: list[TextFile] = []
        cut, skipped, left = 0, max(0, len(files) - MAX_FILES), MAX_BYTES
        for file in files[:MAX_FILES]:
            if left <= 0:
                skipped += 1
                continue
            try:
                text, more = self._folder.tail(file.name, min(TAIL_BYTES, left))
            except OSError:
                skipped += 1
                continue
            left -= min(file.size, TAIL_BYTES)
            cut += more
            texts.append(TextFile(file.name, text))
        said = [f"of {cut} large files only the last {TAIL_BYTES // 2**20} MiB each were read"] if cut else []
        if skipped:
            said.append(f"{skipped} files were not read")
        lines = [
            evolve(_plain(line), file=_name(text.name))
            for text in sorted(texts, key=lambda each: each.name)
            for line in log_lines([text])
        ]
        return _Reading(tuple(lines), tuple(said))


def _name(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))


def _plain(line: LogLine) -> LogLine:
    """A line of the journal as a line of JSON that others write; any other as it is."""
    if not line.text.startswith("{") or '"__REALTIME_TIMESTAMP"' not in line.text:
        return line
    try:
        entry = json.loads(line.text)
        micros = int(str(entry.get("__REALTIME_TIMESTAMP")))
        time = datetime.fromtimestamp(micros / 1e6, UTC).isoformat(timespec="milliseconds")
    except (ValueError, RecursionError, OverflowError, OSError, AttributeError):
        return line
    priority = str(entry.get("PRIORITY", ""))
    service = entry.get("_SYSTEMD_UNIT") or entry.get("SYSLOG_IDENTIFIER")
    service = service.removesuffix(".service") if isinstance(service, str) else None
    told = {
        "time": time.replace("+00:00", "Z"),
        "level": _PRIORITIES[int(priority)] if priority in [*"01234567"] else "info",
        **({"service": service} if service else {}),
        "message": _message(entry.get("MESSAGE")),
    }
    return LogLine(line.file, service, json.dumps(told, ensure_ascii=False))


def _message(value: Json) -> str:
    """The journal exports what is no UTF-8 as a list of bytes."""
    if isinstance(value, list):
        return bytes(b for b in value if isinstance(b, int) and 0 <= b < 256).decode("utf-8", "replace")
    return value if isinstance(value, str) else ""
