"""Reports, packs and suites for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from attrs import evolve
from support.scripted import Scripted

from casenotes.adapters.agents import EmbeddedDiagnostician
from casenotes.adapters.evidence import load_pack
from casenotes.core.baseline.report import BaselineReport, IncidentResult, Judged, Measures
from casenotes.core.text import JsonObject
from casenotes.entrypoints.baseline.running import Make, Plan, Ran, run_suite
from casenotes.entrypoints.baseline.suite import read_suite
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import AgentEvent, Diagnostician, Enquiry

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "baseline" / "suite"
COMMITTED = ROOT / "baseline" / "baseline.json"
EXPECTED = ROOT / "baseline" / "expected.json"

ONE = IncidentResult(
    id="one",
    folder="one",
    question="Why?",
    flow="STATE_GRAPH",
    evidence={"logs/a.log": "sha256:a", "logs/b.log": "sha256:b"},
    facts=(Judged("the disk is full", ("disk", "full"), True), Judged("it is slow", ("slow",), False)),
    decoys=(Judged("it is DNS", ("DNS",), False),),
    measures=Measures(
        citations_valid=True,
        cited=6,
        statements=8,
        rules={"alerts_read": True, "gaps_declared": False},
        steps=4,
        tools=8,
        input_tokens=9000,
        output_tokens=900,
        answer_chars=3000,
        duration_ms=400,
    ),
    session_id="baseline-1",
    run_id="run-1",
    started_at="2026-12-01T00:00:00.000Z",
)


def report(*incidents: IncidentResult, **other: Any) -> BaselineReport:
    """A baseline of these incidents, or of ``ONE``."""
    settings = {"diagnostician": "embedded", "flow": "auto"}
    whole = BaselineReport("0.1.0", "2026-12-01T00:00:00.000Z", settings, incidents or (ONE,))
    return evolve(whole, **other)


def one(**changed: Any) -> IncidentResult:
    """``ONE`` with fields, or measures, of other values."""
    measures = {name: changed.pop(name) for name in list(changed) if hasattr(ONE.measures, name)}
    return evolve(ONE, measures=evolve(ONE.measures, **measures), **changed)


def head(name: str, **other: Any) -> JsonObject:
    return {
        "id": name,
        "source": "test",
        "question": f"Why is {name} slow?",
        "alerts": [],
        "facts": [{"text": "the pool is exhausted", "terms": ["pool", "exhausted"]}],
        **other,
    }


def make_pack(suite: Path, name: str, **other: Any) -> Path:
    """A small pack in the suite."""
    folder = suite / name
    (folder / "logs").mkdir(parents=True)
    (folder / "incident.json").write_text(json.dumps(head(name, **other)))
    (folder / "logs" / f"{name}.log").write_text("12:00 ERROR timeout waiting for a connection\n")
    return folder


def scripted(script: Callable[[Enquiry], AsyncIterator[AgentEvent]]) -> Make:
    """Has every incident diagnosed by this script."""
    return lambda settings: Scripted(script)


def embedded(settings: Settings) -> Diagnostician:
    """The diagnostician that ships, over the pack of these settings."""
    assert settings.evidence is not None
    return EmbeddedDiagnostician([load_pack(settings.evidence)])


def run(suite: Path, out: Path, make: Make = embedded, plan: Plan | None = None, **other: Any) -> Ran:
    """Run a suite, by whoever makes the diagnosis."""
    return asyncio.run(run_suite(read_suite(suite), out, plan or Plan(), Settings(), make=make, **other))


def but_for_times_and_ids(made: BaselineReport) -> BaselineReport:
    return evolve(
        made,
        created_at="",
        incidents=tuple(
            evolve(
                each,
                session_id="",
                run_id="",
                started_at="",
                measures=evolve(each.measures, duration_ms=0),
            )
            for each in made.incidents
        ),
    )
