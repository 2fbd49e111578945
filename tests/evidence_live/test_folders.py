"""Log files and runbooks as they are on disk now."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from casenotes.adapters.evidence.live import LogFolderSource, RunbookFolderSource, TimeSource
from casenotes.adapters.evidence.live.log_folder import TAIL_BYTES
from casenotes.core.text import JsonObject
from casenotes.ports.agent import (
    RUNBOOK_TOOL,
    About,
    EvidenceSource,
    Lookup,
    Observation,
    ObservationStatus,
    OpenEnded,
)

LOGS = "logs.search"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def look(source: EvidenceSource, tool: str, **arguments: Any) -> Observation:
    return asyncio.run(source.look(Lookup(tool, arguments)))


def offered(source: EvidenceSource) -> list[dict[str, Any]]:
    return [lookup.arguments for lookup in asyncio.run(source.offer())]


def offered_for(source: OpenEnded, question: str, *names: str) -> list[dict[str, Any]]:
    alerts: tuple[JsonObject, ...] = tuple({"labels": {"alertname": name}} for name in names)
    return [lookup.arguments for lookup in asyncio.run(source.offer_for(About(question, alerts)))]


def test_logs_are_found_by_file_and_by_service_and_read_anew_each_time(tmp_path: Path) -> None:
    write(tmp_path / "app/web.log", "one\n")
    write(tmp_path / "shop.jsonl", '{"service": "pay", "message": "Refused"}\n')
    source = LogFolderSource(tmp_path)
    assert offered(source) == [{"service": "pay"}, {"file": "app/web"}]
    write(tmp_path / "app/web.log", "one\ntwo ERROR\n")
    assert look(source, LOGS, file="app/web").result == "one\ntwo ERROR"
    assert look(source, LOGS, file="app/web", contains="error").result == "two ERROR"
    assert look(source, LOGS, service="pay").status is ObservationStatus.SUCCESS
    assert look(source, LOGS, query='{a="b"}').status is ObservationStatus.NO_DATA
    assert look(source, LOGS, file="none").status is ObservationStatus.NO_DATA
    assert look(source, "other").status is ObservationStatus.ERROR


def test_the_journal_is_read_as_lines_with_time_level_and_service(tmp_path: Path) -> None:
    entries = [
        {
            "__REALTIME_TIMESTAMP": "1773223200000000",
            "PRIORITY": "3",
            "_SYSTEMD_UNIT": "pay.service",
            "MESSAGE": "refused",
        },
        {"__REALTIME_TIMESTAMP": "1773223201000000", "SYSLOG_IDENTIFIER": "pay", "MESSAGE": [104, 105, -1]},
        {"__REALTIME_TIMESTAMP": "odd", "MESSAGE": "kept as it is"},
    ]
    write(tmp_path / "journal.json", "\n".join(json.dumps(entry) for entry in entries))
    source = LogFolderSource(tmp_path)
    lines = str(look(source, LOGS, service="pay").result).splitlines()
    assert [json.loads(line) for line in lines] == [
        {"time": "2026-03-11T10:00:00.000Z", "level": "error", "service": "pay", "message": "refused"},
        {"time": "2026-03-11T10:00:01.000Z", "level": "info", "service": "pay", "message": "hi"},
    ]
    assert "kept as it is" in str(look(source, LOGS, file="journal").result)


def test_only_the_end_of_a_large_file_is_read_from_a_whole_line_on_and_it_is_said(tmp_path: Path) -> None:
    line = "x" * 99 + "\n"
    write(tmp_path / "large.log", line * (TAIL_BYTES // 100 * 2) + "last\n")
    seen = look(LogFolderSource(tmp_path), LOGS, file="large")
    text = str(seen.result)
    assert text.endswith("\nlast")
    assert {len(each) for each in text.splitlines()[1:-1]} == {99}
    assert seen.left_out is not None
    assert "of 1 large files only the last 1 MiB each were read" in seen.left_out


def test_nothing_outside_the_folder_is_read_and_no_pipe_is_waited_for(tmp_path: Path) -> None:
    write(tmp_path / "secret", "s3cret")
    logs = tmp_path / "logs"
    write(logs / "a.log", "fine\n")
    (logs / "b.log").symlink_to(tmp_path / "secret")
    (logs / "out").symlink_to(tmp_path)
    (logs / "loop").symlink_to(logs / "loop")
    os.mkfifo(logs / "pipe.log")
    write(logs / ".hidden.log", "no\n")
    write(logs / "old.log.gz", "no\n")
    assert offered(LogFolderSource(logs)) == [{"file": "a"}]


def test_a_folder_that_is_gone_is_an_error_and_says_so(tmp_path: Path) -> None:
    for source, tool in (
        (LogFolderSource(tmp_path / "gone"), LOGS),
        (RunbookFolderSource(tmp_path / "gone"), RUNBOOK_TOOL),
    ):
        seen = look(source, tool, file="x")
        assert seen.status is ObservationStatus.ERROR
        assert str(seen.error_message).endswith("folder cannot be read")
    assert offered(LogFolderSource(tmp_path / "gone")) == [{"file": "*"}]


@pytest.fixture
def runbooks(tmp_path: Path) -> RunbookFolderSource:
    write(tmp_path / "node/DiskFull.md", "# Disk is full\n\n## Meaning\n\nThe volume has no space.\n")
    write(tmp_path / "shop/QueueLong.md", "# Queue long\n\n## Mitigation\n\nAdd workers to the orders.\n")
    write(tmp_path / "LICENSE", "volume space queue orders")
    return RunbookFolderSource(tmp_path)


def test_a_runbook_in_a_sub_folder_is_found_by_alert_and_by_words(runbooks: RunbookFolderSource) -> None:
    assert str(look(runbooks, RUNBOOK_TOOL, alertname="QueueLong").result).startswith("# Queue long")
    assert str(look(runbooks, RUNBOOK_TOOL, alertname="disk-is-full").result).startswith("# Disk is full")
    assert str(look(runbooks, RUNBOOK_TOOL, text="add workers").result).startswith("# Queue long")
    assert look(runbooks, RUNBOOK_TOOL, alertname="Other") == Observation(ObservationStatus.NO_DATA)


def test_the_runbooks_worth_reading_are_offered(runbooks: RunbookFolderSource) -> None:
    assert offered(runbooks) == []
    assert offered_for(runbooks, "", "Unknown", "DiskFull") == [
        {"alertname": "Unknown"},
        {"alertname": "DiskFull"},
    ]
    assert offered_for(runbooks, "what does DiskFull mean?") == [{"alertname": "DiskFull"}]
    assert offered_for(runbooks, "orders need workers") == [{"text": "orders need workers"}]
    assert offered_for(runbooks, "what is the capital of France?") == []


def test_the_time_is_told() -> None:
    seen = look(TimeSource(), "time.now")
    assert isinstance(seen.result, dict)
    assert str(seen.result["utc"]).endswith("Z")
    assert look(TimeSource(), "other").status is ObservationStatus.ERROR
    assert offered(TimeSource()) == []
