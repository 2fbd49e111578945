"""Which evidence a service looks at, by its settings."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from casenotes.adapters.evidence.partial import Without
from casenotes.entrypoints.evidence import evidence_sources
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import ALERTS_TOOL, RUNBOOK_TOOL, Closing, Lookup, ObservationStatus

URL = "http://127.0.0.1:1"
METRICS = {"metrics.query", "metrics.query_range"}
LOGS = "logs.search"


def tools(settings: Settings) -> list[set[str]]:
    return [set(source.tools) for source in evidence_sources(settings)]


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    head = {"id": "i", "source": "s", "question": "q", "alerts": [], "facts": []}
    (tmp_path / "incident.json").write_text(json.dumps(head))
    return tmp_path


def test_without_a_live_source_it_is_the_pack(pack: Path) -> None:
    for settings in (Settings(), Settings(evidence=pack)):
        (only,) = tools(settings)
        assert {ALERTS_TOOL, RUNBOOK_TOOL, LOGS} <= only


@pytest.mark.parametrize(
    ("settings", "answered"),
    [
        (Settings(prometheus_url=URL), [{ALERTS_TOOL}, METRICS]),
        (Settings(alertmanager_url=URL), [{ALERTS_TOOL}]),
        (Settings(prometheus_url=URL, alertmanager_url=URL), [{ALERTS_TOOL}, METRICS]),
        (Settings(loki_url=URL, logs=Path("."), runbooks=Path(".")), [{LOGS}, {LOGS}, {RUNBOOK_TOOL}]),
    ],
)
def test_with_a_live_source_the_example_is_left_out(settings: Settings, answered: list[set[str]]) -> None:
    assert tools(settings) == [*answered, {"time.now"}]


def test_a_pack_that_is_set_keeps_what_no_live_source_answers(pack: Path) -> None:
    *_, rest = evidence_sources(Settings(prometheus_url=URL, evidence=pack))
    assert rest.tools == {LOGS, RUNBOOK_TOOL}
    assert isinstance(rest, Without)
    assert asyncio.run(rest.look(Lookup(ALERTS_TOOL))).status is ObservationStatus.ERROR
    assert ALERTS_TOOL not in {lookup.tool for lookup in asyncio.run(rest.offer())}


def test_what_holds_connections_can_be_closed() -> None:
    settings = Settings(prometheus_url=URL, alertmanager_url=URL, loki_url=URL)
    closing = [source for source in evidence_sources(settings) if isinstance(source, Closing)]
    assert len(closing) == 3
