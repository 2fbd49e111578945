"""Log lines, gathered by kind: numbers and ids masked, counted, errors first."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from enum import IntEnum

from attrs import evolve, frozen

from casenotes.adapters.agents.findings import ranking
from casenotes.adapters.agents.findings.model import Finding, Kind, Role, code, moment

MAX_ERROR_KINDS = 4
MAX_WARNING_KINDS = 2


class Severity(IntEnum):
    """How bad a line says it is."""

    PLAIN = 0
    WARNING = 1
    ERROR = 2
    FATAL = 3


@frozen
class LogEntry:
    """One line as read: what it says, how bad, and when (aware, or ``None``)."""

    message: str
    severity: Severity
    time: datetime | None = None


@frozen
class Cluster:
    """Lines of one kind: how many, the first of them, and the earliest time."""

    first: LogEntry
    count: int


_MASKS = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I), "<id>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.I), "<id>"),
    (re.compile(r"\b(?=[a-z-]*\d)(?=\d*[a-f])[0-9a-f]{7,}\b", re.I), "<id>"),
    (re.compile(r"\d+"), "<n>"),
)
_LEVELS = {
    "trace": Severity.PLAIN,
    "debug": Severity.PLAIN,
    "info": Severity.PLAIN,
    "notice": Severity.PLAIN,
    "warn": Severity.WARNING,
    "warning": Severity.WARNING,
    "err": Severity.ERROR,
    "error": Severity.ERROR,
    "severe": Severity.ERROR,
    "crit": Severity.FATAL,
    "critical": Severity.FATAL,
    "fatal": Severity.FATAL,
    "panic": Severity.FATAL,
    "emerg": Severity.FATAL,
    "alert": Severity.FATAL,
}
_LEVEL = re.compile(
    r"\blevel=\"?(?P<key>\w+)|[\[<(](?P<box>[A-Za-z]+)[\])>]"
    r"|\b(?P<word>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|CRITICAL|FATAL|PANIC)\b"
)
_HARMLESS = re.compile(
    r"\b(?:no|0|without)\s+(?:errors?|failures?)\b|\b(?:errors?|failed|failures)[=:]\s*0\b", re.I
)
_BAD = re.compile(
    r"exception|traceback|\berror|\w(?:Error|Exception)\b|\bfail(?:ed|ure|ing|s)?\b|\brefused\b|\bdenied\b"
    r"|\btimed[ -]?out\b|\btimeout\b|\bcannot\b|\bcan't\b|\bcould not\b|\bunable to\b|\bno such\b|\bnot found\b"
    r"|\bunexpected\b|\bunavailable\b|\bexhausted\b|\bpanic\b|\bkilled\b|\bout of memory\b|\bunreachable\b"
    r"|\bcorrupt|\bdeadlock|\bno space\b|\bexpired\b|\binvalid\b",
    re.I,
)
_FATAL = re.compile(r"\bpanic:|\bfatal\b|\bout of memory\b|\bsegmentation fault\b", re.I)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?")
_MESSAGE_KEYS = ("message", "msg", "error", "log", "event", "text")
_LEVEL_KEYS = ("level", "severity", "lvl", "log.level")
_TIME_KEYS = ("time", "timestamp", "ts", "@timestamp", "t")


def mask(line: str) -> str:
    """The line with its numbers and ids masked, so that lines of one kind are equal. Idempotent."""
    for pattern, name in _MASKS:
        line = pattern.sub(name, line)
    return line


def read_line(line: str) -> LogEntry:
    """A line of text or of JSON, as an entry."""
    if line.startswith("{"):
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            fields = None
        if isinstance(fields, dict) and any(key in fields for key in _MESSAGE_KEYS):
            return _read_fields(fields)
    stated = _LEVEL.search(line[:160])
    level = None
    if stated is not None:
        level = _LEVELS.get((stated["key"] or stated["box"] or stated["word"]).casefold())
    time = _TIME.search(line[:80])
    return LogEntry(
        line.strip(), _guess(line) if level is None else level, parse_time(time[0]) if time else None
    )


def _read_fields(fields: dict[str, object]) -> LogEntry:
    said = [fields[key] for key in _MESSAGE_KEYS if key in fields]
    message = ": ".join(text for text in said if isinstance(text, str) and text)
    stated = next((fields[key] for key in _LEVEL_KEYS if key in fields), None)
    level = _LEVELS.get(stated.casefold()) if isinstance(stated, str) else None
    time = next((fields[key] for key in _TIME_KEYS if isinstance(fields.get(key), str)), None)
    return LogEntry(
        message, _guess(message) if level is None else level, parse_time(str(time)) if time else None
    )


def parse_time(text: str) -> datetime | None:
    """An ISO 8601 time with its zone; ``None`` for anything else, a time without zone included."""
    try:
        time = datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def _guess(line: str) -> Severity:
    if not _BAD.search(_HARMLESS.sub("", line)):
        return Severity.PLAIN
    return Severity.FATAL if _FATAL.search(line) else Severity.ERROR


def clusters(lines: Iterable[str]) -> list[Cluster]:
    """The lines by kind: the worst first, then the most frequent, then the earliest seen."""
    found: dict[tuple[Severity, str], Cluster] = {}
    for line in lines:
        if not line.strip():
            continue
        entry = read_line(line)
        key = (entry.severity, mask(_TIME.sub("", entry.message)))
        known = found.get(key)
        found[key] = Cluster(entry, 1) if known is None else evolve(known, count=known.count + 1)
    return sorted(found.values(), key=lambda cluster: (-cluster.first.severity, -cluster.count))


def log_findings(subject: str, text: str) -> list[Finding]:
    """What the lines of one log show: its kinds of errors and warnings, or that it has none."""
    kinds = clusters(text.splitlines())
    errors = [kind for kind in kinds if kind.first.severity >= Severity.ERROR][:MAX_ERROR_KINDS]
    warnings = [kind for kind in kinds if kind.first.severity is Severity.WARNING][:MAX_WARNING_KINDS]
    if not errors and not warnings and kinds:
        total = sum(kind.count for kind in kinds)
        say = (
            f"The log{_of(subject)} has {total} line{'s' * (total != 1)}, none of them an error or a warning"
        )
        return [Finding(Kind.LOG, Role.CLEAR, subject, say, ranking.CLEAR)]
    return [_finding(subject, kind) for kind in (*errors, *warnings)]


def _finding(subject: str, kind: Cluster) -> Finding:
    first = kind.first
    warning = first.severity is Severity.WARNING
    weight = ranking.LOG_WARNING
    if not warning:
        announces = first.message.rstrip().endswith(":")
        fatal = first.severity is Severity.FATAL
        weight = ranking.LOG_ANNOUNCEMENT if announces else ranking.log_weight(fatal, kind.count)
    often = "once" if kind.count == 1 else f"{kind.count} times"
    since = f", first at {moment(first.time)}" if first.time else ""
    return Finding(
        kind=Kind.LOG,
        role=Role.CONTEXT if warning else Role.CAUSE,
        subject=subject,
        text=f"The log{_of(subject)} says {often}{since}: {code(first.message)}",
        weight=weight,
        since=first.time,
        action="" if warning else f"follow up what the log{_of(subject)} says",
    )


def _of(subject: str) -> str:
    return f" of {code(subject)}" if subject else ""
