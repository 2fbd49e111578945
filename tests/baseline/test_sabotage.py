"""Diagnosticians that got worse: each is told as a regression, by name."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from attrs import evolve, frozen
from baseline.making import SUITE, embedded, run

from casenotes.adapters.agents import EmbeddedDiagnostician
from casenotes.adapters.evidence import load_pack, read_incident
from casenotes.core.baseline.diff import Drift, Verdict, compare
from casenotes.core.baseline.report import BaselineReport
from casenotes.entrypoints.baseline.running import Make
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import (
    AgentEvent,
    Chunk,
    Diagnostician,
    Enquiry,
    EvidenceSource,
    Lookup,
    Observation,
    ObservationStatus,
)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> BaselineReport:
    return run(SUITE, tmp_path_factory.mktemp("honest") / "a.json").report


def regressions(honest: BaselineReport, made: Make, tmp_path: Path) -> list[Drift]:
    found = compare(honest, run(SUITE, tmp_path / "b.json", made).report)
    return found.of(Verdict.REGRESSED)


@frozen
class Rewriting:
    """Says what another one says, in other words."""

    inner: Diagnostician

    async def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        async for event in self.inner.diagnose(enquiry):
            yield evolve(event, text=self.rewrite(event.text)) if isinstance(event, Chunk) else event

    def rewrite(self, text: str) -> str:
        raise NotImplementedError


class CitingNothing(Rewriting):
    def rewrite(self, text: str) -> str:
        return re.sub(r" ?\[T\d+\]", "", text)


class CitingWhatWasNotDone(Rewriting):
    def rewrite(self, text: str) -> str:
        return re.sub(r"\[T\d+\]", "[T99]", text)


@frozen
class WithoutLogs:
    """A source in which no log is seen."""

    inner: EvidenceSource

    @property
    def tools(self) -> frozenset[str]:
        return self.inner.tools

    async def offer(self) -> Sequence[Lookup]:
        return [lookup for lookup in await self.inner.offer() if "log" not in lookup.tool]

    async def look(self, lookup: Lookup) -> Observation:
        if "log" in lookup.tool:
            return Observation(ObservationStatus.NO_DATA)
        return await self.inner.look(lookup)


def ignoring_logs(settings: Settings) -> Diagnostician:
    assert settings.evidence is not None
    return EmbeddedDiagnostician([WithoutLogs(load_pack(settings.evidence))])


@frozen
class AnsweringEverything:
    """Names every cause there may be, after what it found: some of them will be right."""

    inner: Diagnostician
    guesses: tuple[str, ...]

    async def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        first = True
        async for event in self.inner.diagnose(enquiry):
            if first and isinstance(event, Chunk):
                first = False
                for guess in self.guesses:
                    yield Chunk(f"- {guess}\n")
            yield event


def every_guess() -> tuple[str, ...]:
    """What any fact or decoy of the suite wants to hear."""
    guesses: list[str] = []
    for folder in sorted(SUITE.iterdir()):
        incident = read_incident(folder)
        for fact in incident.facts + incident.decoys:
            said = " ".join(term.split("|")[0] for term in fact.terms)
            guesses.append(f"The cause may be that {fact.text}: {said}")
    return tuple(guesses)


def answering_everything(settings: Settings) -> Diagnostician:
    return AnsweringEverything(embedded(settings), every_guess())


def test_dropped_citations_are_told(honest: BaselineReport, tmp_path: Path) -> None:
    found = regressions(honest, lambda settings: CitingNothing(embedded(settings)), tmp_path)
    metrics = {drift.metric for drift in found}
    assert {"citations.cited", "statements.uncited", "rule: findings_cited"} <= metrics
    with_claims = {one.id for one in honest.incidents if one.measures.cited and one.measures.statements}
    assert {drift.incident for drift in found if drift.metric == "statements.uncited"} == with_claims


def test_invented_citations_are_told(honest: BaselineReport, tmp_path: Path) -> None:
    found = regressions(honest, lambda settings: CitingWhatWasNotDone(embedded(settings)), tmp_path)
    metrics = {drift.metric for drift in found}
    assert {"citations.valid", "citations.unsupported", "rule: citations_exist"} <= metrics


def test_ignored_logs_are_told(honest: BaselineReport, tmp_path: Path) -> None:
    found = regressions(honest, ignoring_logs, tmp_path)
    missed = {(drift.incident, drift.metric) for drift in found if drift.metric.startswith("fact: ")}
    assert {
        ("logs_disk_full", "fact: orders has no space left on its device"),
        ("source_down_metrics", "fact: the mail relay refuses the login of notifier"),
        ("contradiction_ready_but_failing", "fact: basket cannot resolve the name of its store"),
    } <= missed
    assert "metrics_memory_leak" not in {incident for incident, _ in missed}


def test_an_answer_to_everything_is_told(honest: BaselineReport, tmp_path: Path) -> None:
    found = regressions(honest, answering_everything, tmp_path)
    by_metric = {
        metric: {d.incident for d in found if d.metric == metric} for metric in {d.metric for d in found}
    }
    everywhere = {one.id for one in honest.incidents}
    assert by_metric["statements.uncited"] == everywhere
    assert by_metric["answerChars"] == everywhere
    decoys = {incident for metric, of in by_metric.items() if metric.startswith("decoy: ") for incident in of}
    assert decoys == {one.id for one in honest.incidents if one.decoys}
