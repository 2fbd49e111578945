from __future__ import annotations

import io
import json
import logging
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


def test_json_lines_are_objects_that_begin_with_what_they_are(root: logging.Logger) -> None:
    for line in lines_of("json", hostile).splitlines():
        assert list(json.loads(line))[:4] == ["timestamp", "level", "logger", "event"]
