"""Asking the embedded diagnostician, and what every run of it keeps to."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from attrs import evolve, frozen

from casenotes.adapters.agents import EmbeddedDiagnostician
from casenotes.adapters.evidence import shipped_pack
from casenotes.core.model import MessagePair
from casenotes.core.orchestration import OrchestrationTrace, fold
from casenotes.core.text import Json, JsonObject
from casenotes.core.words import AgentFlow, StepStatus
from casenotes.ports.agent import (
    ALERTS_TOOL,
    AgentEvent,
    Answered,
    Chunk,
    Enquiry,
    EvidenceSource,
    GraphMoved,
    Lookup,
    Observation,
    ObservationStatus,
    StepTaken,
    ToolCalled,
)

SHOP = shipped_pack()
NOW = datetime(2026, 3, 11, 10, 0, tzinfo=UTC)


class Recorded:
    """A source of given answers; it notes what it was asked."""

    def __init__(self, *answers: tuple[str, JsonObject, Json], failing: Sequence[str] = ()) -> None:
        self._answers = answers
        self._failing = frozenset(failing)
        self.asked: list[Lookup] = []

    @property
    def tools(self) -> frozenset[str]:
        return frozenset(tool for tool, _, _ in self._answers) | self._failing

    async def offer(self) -> Sequence[Lookup]:
        return [Lookup(tool, arguments) for tool, arguments, _ in self._answers]

    async def look(self, lookup: Lookup) -> Observation:
        self.asked.append(lookup)
        if lookup.tool in self._failing:
            return Observation(ObservationStatus.ERROR, error_message="it is down")
        for tool, arguments, result in self._answers:
            if (tool, arguments) == (lookup.tool, lookup.arguments):
                return Observation(
                    ObservationStatus.SUCCESS if result is not None else ObservationStatus.NO_DATA, result
                )
        return Observation(ObservationStatus.NO_DATA)


def alert(name: str, **labels: str) -> JsonObject:
    named: JsonObject = {"alertname": name, **labels}
    return {
        "labels": named,
        "annotations": {"description": f"{name} is on"},
        "startsAt": "2026-03-11T09:44:00Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "status": {"state": "active"},
    }


def firing(*alerts: JsonObject) -> tuple[str, JsonObject, Json]:
    return ALERTS_TOOL, {}, list(alerts)


@frozen
class Run:
    """The events of one run, read."""

    events: tuple[AgentEvent, ...]

    @property
    def answer(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Chunk))

    @property
    def calls(self) -> list[ToolCalled]:
        return [event for event in self.events if isinstance(event, ToolCalled)]

    @property
    def steps(self) -> list[StepTaken]:
        return [event for event in self.events if isinstance(event, StepTaken)]

    @property
    def trace(self) -> OrchestrationTrace | None:
        return fold("run-1", (event.event for event in self.events if isinstance(event, GraphMoved)))

    @property
    def degraded(self) -> bool:
        last = self.events[-1]
        assert isinstance(last, Answered)
        return last.degraded

    @property
    def cited(self) -> set[int]:
        return {int(number) for number in re.findall(r"\[T(\d+)\]", self.answer)}

    def but_for_time(self) -> list[AgentEvent]:
        return [
            evolve(event, duration_ms=None) if isinstance(event, StepTaken | ToolCalled) else event
            for event in self.events
        ]


def ask(
    question: str,
    flow: AgentFlow = AgentFlow.CHAT,
    *sources: EvidenceSource,
    conversation: tuple[MessagePair, ...] = (),
    alerts: tuple[JsonObject, ...] | None = None,
) -> Run:
    """Ask, of the shipped pack where no source is given, and check what every run keeps to."""
    ticks = itertools.count()
    diagnostician = EmbeddedDiagnostician(sources or [SHOP], lambda: float(next(ticks)), lambda: NOW)
    enquiry = Enquiry("s-1", "run-1", question, flow, conversation, alerts)

    async def events() -> tuple[AgentEvent, ...]:
        return tuple([event async for event in diagnostician.diagnose(enquiry)])

    run = Run(asyncio.run(events()))
    keeps_the_rules(run)
    return run


def keeps_the_rules(run: Run) -> None:
    """One ``Answered``, last; chunks end lines; citations exist; no lookup twice; failures are marked."""
    assert [isinstance(event, Answered) for event in run.events].index(True) == len(run.events) - 1
    assert run.answer.endswith("\n")
    assert all(event.text.endswith("\n") for event in run.events if isinstance(event, Chunk))
    assert run.cited <= set(range(1, len(run.calls) + 1))
    lookups = [(call.tool_name, json.dumps(call.arguments, sort_keys=True)) for call in run.calls]
    assert len(lookups) == len(set(lookups))
    assert all(call.status is StepStatus.FAILED for call in run.calls if call.error_message)
    assert all(step.model is None and step.output for step in run.steps)
