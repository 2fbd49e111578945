"""One request, one line, and no field in it that the service did not write: whatever the client sends."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest
import structlog
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.background import Background, in_background
from support.service import Backend

from casenotes.entrypoints.http import logs
from casenotes.entrypoints.http.metrics import Metrics
from casenotes.entrypoints.http.observer import RunReporter

HOSTILE = (
    "/x status=200 remote=10.0.0.1",
    '/x", "status": 200, "path": "/y',
    "/x\n2026-01-01T00:00:00Z [info     ] request method=GET path=/admin status=200",
    "/x\r\n{}",
    "/\x1b[2J\x1b[31mred",
    "/a\u2028b\u2029c\x85d\u202ee\u200bf\ufeffg",
    "/a\\nb 'c' \"d\" = e",
    "/\x00\x07\x7f",
    "/ ",
)
INVISIBLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
CONSOLE = re.compile(
    r"(?P<timestamp>\S+) \[info +\] request +(?P<fields>.*)",
)
FIELD = re.compile(r'(?P<name>[a-z]+)=(?P<value>"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[^ "=\']+)(?: |$)')
NAMES = ["method", "path", "remote", "seconds", "status"]

text = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(HOSTILE)
token = st.text("!#$%&'*+-.^_`|~abcXYZ019", min_size=1, max_size=20)
header_value = st.binary(max_size=60).map(lambda raw: re.sub(rb"[\x00-\x08\x0a-\x1f\x7f]", b"?", raw))


@contextmanager
def logged_as(log_format: str) -> Iterator[io.StringIO]:
    """What is logged meanwhile; afterwards logging is as it was."""
    root, stream = logging.getLogger(), io.StringIO()
    handlers, level, configured = root.handlers[:], root.level, structlog.get_config()
    logs.configure(log_format, stream)
    try:
        yield stream
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.configure(**configured)


def ask(service: Background, method: str, path: str, agent: bytes) -> int:
    """The status of one request, sent byte for byte; it is logged before the connection ends."""
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nUser-Agent: ".encode() + agent
    )
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(head + b"\r\nX-Forwarded-For: " + agent + b"\r\n\r\n")
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return int(received.split()[1])


def fields_of(log_format: str, line: str) -> dict[str, str]:
    """The fields of an access line, told apart as a reader of logs would."""
    if log_format == "json":
        found = json.loads(line)
        assert list(found)[:4] == ["timestamp", "level", "logger", "event"] and found["event"] == "request"
        return {name: str(found[name]) for name in list(found)[4:]}
    whole = CONSOLE.fullmatch(line)
    assert whole is not None, line
    rest, fields = whole["fields"].replace("[casenotes.http] ", ""), list[tuple[str, str]]()
    while rest:
        one = FIELD.match(rest)
        assert one is not None, line
        value = ast.literal_eval(one["value"]) if one["value"][0] in "'\"" else one["value"]
        fields.append((one["name"], value))
        rest = rest[one.end() :]
    assert len({name for name, _ in fields}) == len(fields)
    return dict(fields)


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_no_request_breaks_a_line_or_forges_a_field(memory: Backend, log_format: str) -> None:
    with logged_as(log_format) as stream, in_background(memory) as service:

        @settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
        @given(path=text, method=token, agent=header_value)
        @example(path=HOSTILE[0], method="GET", agent=b"x")
        @example(path=HOSTILE[1], method="GET", agent=b"x")
        @example(path=HOSTILE[2], method="GET", agent=b"x")
        @example(path=HOSTILE[5], method="GET", agent=b"x\xe2\x80\xa8y")
        def held(path: str, method: str, agent: bytes) -> None:
            before = len(stream.getvalue())
            status = ask(service, method, f"/api/chat/session/{quote(path, safe='')}", agent)
            written = stream.getvalue()[before:]
            lines = written.splitlines()  # it knows more ends of lines than terminals do
            assert not INVISIBLE.search(written)
            if status == 400 and len(lines) == 2:  # what is no HTTP
                assert "malformed request" in lines.pop(0)
            assert len(lines) == 1 and written.endswith("\n"), written
            fields = fields_of(log_format, lines[0])
            assert sorted(fields) == NAMES
            assert fields["status"] == str(status) and fields["remote"] == "127.0.0.1"
            assert fields["method"] in (method, "UNKNOWN")

        held()


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_an_exception_cannot_write_a_line_of_its_own(log_format: str) -> None:
    with logged_as(log_format) as stream:
        forged = "2026-01-01T00:00:00Z [info     ] request method=GET"
        try:
            raise ValueError(f"x\n{forged}\r\n\u2028{forged}\n\n{forged}")
        except ValueError as fault:
            RunReporter(Metrics.fresh()).faulted("s-1", "run-1", "testing", fault)
        written = stream.getvalue()
    assert "Traceback" in written and forged in written
    starts = [line for line in written.splitlines() if not line.startswith("  | ")]
    assert len(starts) == 1 and "fault" in starts[0]


def test_words_of_other_libraries_are_told_from_fields() -> None:
    with logged_as("console") as stream:
        logging.getLogger("other").warning("done status=%s\nremote=%s", 200, "10.0.0.1")
        structlog.get_logger("casenotes").info("plain words", quoted='"', blank="a b", number=7)
    first, second = stream.getvalue().splitlines()
    assert "'done status=200\\\\nremote=10.0.0.1'" in first
    for field in ("blank='a b'", "number=7", """quoted='"'"""):
        assert field in second


def test_the_line_of_a_runs_end_holds_the_digest_that_its_trace_shows(memory: Backend) -> None:
    """Shipped elsewhere, it finds out who recomputes the digests of a record that he changed."""
    with logged_as("json") as stream, in_background(memory) as service:
        told = service.wait_for(service.here.client.ask("why"))
        trace = service.wait_for(service.here.client.trace(told["sessionId"], told["runId"]))
        lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    ended = [line for line in lines if line["event"] == "run ended"]
    assert [(line["run_id"], line["digest"]) for line in ended] == [
        (told["runId"], trace.data["run"]["digest"])
    ]
    assert ended[0]["digest"]
