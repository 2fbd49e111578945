"""Logging: one line an event, for people or as JSON, with no secret and no control character in it."""

from __future__ import annotations

import json
import logging
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TextIO

import structlog
from aiohttp.abc import AbstractAccessLogger
from aiohttp.web import BaseRequest, StreamResponse
from attrs import frozen
from structlog.typing import EventDict, Processor

from casenotes.core.redaction import redaction_for_key
from casenotes.core.text import clean, clean_json
from casenotes.entrypoints.http.shapes import moment

_UNSEEN = r"\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
_CONTROL = re.compile(rf"[\x00-\x1f{_UNSEEN}]")
_CONTROL_IN_TRACEBACK = re.compile(rf"[\x00-\x08\x0b-\x1f{_UNSEEN}]")
_TRACEBACK = "exception"
_FIRST = ("timestamp", "level", "logger", "event")
_REQUESTS = logging.getLogger("casenotes.http")
_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
_OWN = frozenset({"run_id", "digest", "flow"})
"""Fields of a ``Line`` whose text is always of the service's own making."""
_OWN_WORDS = frozenset({"GET", "POST", "DELETE", "RUNNING", "SUCCESS", "FAILED"})
_JSON = json.JSONEncoder(ensure_ascii=False)


@frozen
class Line:
    """The message of a log record: what happened, and its fields."""

    event: str
    fields: Mapping[str, object]

    def __str__(self) -> str:
        return " ".join([self.event, *(f"{name}={value!r}" for name, value in self.fields.items())])


def tell(logger: logging.Logger, level: int, event: str, **fields: object) -> None:
    """Log one line. For what every request and run tells: structlog's way to the same line costs several times that."""
    if logger.isEnabledFor(level):
        logger.handle(logger.makeRecord(logger.name, level, __file__, 0, Line(event, fields), (), None))


def configure(log_format: str | None = None, stream: TextIO | None = None) -> None:
    """Send all logs, those of other libraries too, to ``stream`` (standard error), as ``console`` or ``json``.

    Without a format: ``console`` on a terminal, else ``json``.
    """
    target = stream or sys.stderr
    chosen = log_format or ("console" if target.isatty() else "json")
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    handler = logging.StreamHandler(target)
    handler.setFormatter(_Formatter(shared, _renderers(chosen, target)))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("alembic").setLevel(logging.WARNING)  # it tells each connection it looks at
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def _renderers(log_format: str, target: TextIO) -> list[Processor]:
    if log_format == "json":
        return [lambda _logger, _method, event: _JSON.encode(event)]
    console = structlog.dev.ConsoleRenderer(
        colors=target.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    return [told_apart, console]


class _Formatter(structlog.stdlib.ProcessorFormatter):
    """Renders each ``Line`` straight away, and all else as structlog does; both come out alike."""

    def __init__(self, before: Sequence[Processor], renderers: Sequence[Processor]) -> None:
        processors = [self.remove_processors_meta, cleaned, *renderers]
        super().__init__(foreign_pre_chain=before, processors=processors)
        self._renderers = renderers

    def format(self, record: logging.LogRecord) -> str:
        line: object = record.msg
        if not isinstance(line, Line):
            return super().format(record)
        level = record.levelname.lower()
        event: EventDict = {
            "timestamp": moment(datetime.fromtimestamp(record.created, UTC)),
            "level": level,
            "logger": record.name,
            "event": line.event,
        }
        for name, value in line.fields.items():
            own = name in _OWN or (isinstance(value, str) and value in _OWN_WORDS)
            event[name] = value if own else _clean(name, value)
        rendered: object = event
        for render in self._renderers:
            rendered = render(None, level, event)
        return str(rendered)


def told_apart(_logger: object, _method: str, event: EventDict) -> EventDict:
    """The event for a line of ``name=value``, whose renderer quotes values that could be taken for two.

    Here what it writes as it comes: an event's own words are no field, and no line of a traceback is an event.
    """
    words, traceback = event["event"], event.get(_TRACEBACK)
    if isinstance(words, str) and "=" in words:
        event["event"] = repr(words)
    if isinstance(traceback, str):
        event[_TRACEBACK] = textwrap.indent(traceback, "  | ", lambda _line: True)
    return event


def cleaned(_logger: object, _method: str, event: EventDict) -> EventDict:
    """The event with each string clean: its secrets redacted, its control characters escaped; what it is, first."""
    ordered = {key: event[key] for key in _FIRST if key in event} | dict(event)
    return {key: _clean(key, value) for key, value in ordered.items()}


def _clean(key: str, value: object) -> object:
    redacted = redaction_for_key(key)
    if redacted is not None:
        return redacted
    if isinstance(value, str):
        pattern = _CONTROL_IN_TRACEBACK if key == _TRACEBACK else _CONTROL
        return pattern.sub(_escape, clean(value))
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return _escape_inside(clean_json(value))
    return _CONTROL.sub(_escape, clean(str(value)))


def _escape_inside(value: object) -> object:
    if isinstance(value, str):
        return _CONTROL.sub(_escape, value)
    if isinstance(value, dict):
        return {_CONTROL.sub(_escape, key): _escape_inside(inner) for key, inner in value.items()}
    return [_escape_inside(inner) for inner in value] if isinstance(value, list) else value


def _escape(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode("ascii")


class AccessLog(AbstractAccessLogger):
    """A line for each answered request; probes and scrapes only at debug level."""

    def log(self, request: BaseRequest, response: StreamResponse, time: float) -> None:
        level = logging.DEBUG if request.path in _QUIET else logging.INFO
        tell(
            _REQUESTS,
            level,
            "request",
            method=request.method,
            path=request.path,
            status=response.status,
            seconds=round(time, 3),
            remote=request.remote,
        )
