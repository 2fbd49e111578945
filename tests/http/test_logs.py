from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest
import structlog

from casenotes.entrypoints.http import logs
from casenotes.entrypoints.http.metrics import Metrics
from casenotes.entrypoints.http.observer import RunReporter


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as it was before once the test is over."""
    root = logging.getLogger()
    handlers, level, configured = root.handlers[:], root.level, structlog.get_config()
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**configured)


def lines_of(log_format: str, act: object) -> str:
    stream = io.StringIO()
    logs.configure(log_format, stream)
    assert callable(act)
    act()
    return stream.getvalue()


def hostile() -> None:
    structlog.get_logger("x").info(
        "password=hunter2 \x1b[31m\nforged",
        nested={"token": "hunter2", "list": ["pwd=hunter2", b"\x00"]},
        obj=object,
        api_key="hunter2",
    )
    logging.getLogger("other.library").warning("Bearer %s\r\nforged", "hunter2hunter2")
    try:
        raise ValueError("postgres://u:hunter2@db\x1b[0m")
    except ValueError as fault:
        RunReporter(Metrics.fresh()).faulted("s-1", "run-1", "testing", fault)


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_no_secret_and_no_control_character_reaches_the_log(root: logging.Logger, log_format: str) -> None:
    written = lines_of(log_format, hostile)
    assert "hunter2" not in written and "[redacted:" in written
    assert not any(character in written for character in "\x1b\r\x00")
    assert not any(line.startswith("forged") for line in written.splitlines())
    assert "Traceback" in written and "ValueError" in written and "run-1" in written


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_line_told_straight_reads_as_structlog_would_have_written_it(
    root: logging.Logger, log_format: str
) -> None:
    fields = {
        "status": "GET",
        "path": "/x password=hunter2\u2028\x1b[31m",
        "seconds": 0.25,
        "count": 3,
        "digest": None,
        "api_key": "hunter2",
        "flow": "CHAT",
    }
    straight = lines_of(
        log_format, lambda: logs.tell(logging.getLogger("x"), logging.WARNING, "told", **fields)
    )
    chained = lines_of(log_format, lambda: structlog.get_logger("x").warning("told", **fields))
    assert "hunter2" not in straight and len(straight.splitlines()) == 1

    def without_time(line: str) -> str:
        return re.sub(r"[0-9-]{10}T[0-9:.]{15}Z", "<time>", line)

    assert without_time(straight) == without_time(chained) != straight


def test_a_line_below_the_level_is_not_written(root: logging.Logger) -> None:
    assert lines_of("json", lambda: logs.tell(logging.getLogger("x"), logging.DEBUG, "told")) == ""


def test_a_line_reads_well_where_somebody_elses_handler_writes_it(root: logging.Logger) -> None:
    stream = io.StringIO()
    root.handlers[:] = [logging.StreamHandler(stream)]
    logs.tell(logging.getLogger("x"), logging.WARNING, "run failed", run_id="run-1", seconds=0.5)
    assert stream.getvalue() == "run failed run_id='run-1' seconds=0.5\n"


def test_json_lines_are_objects_that_begin_with_what_they_are(root: logging.Logger) -> None:
    for line in lines_of("json", hostile).splitlines():
        assert list(json.loads(line))[:4] == ["timestamp", "level", "logger", "event"]
