"""Diagnosticians that do what a test wants, and remember what they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

from casenotes.core.orchestration import EvidenceRetried, GraphEnded, NodeEntered, TerminationReason
from casenotes.core.words import AgentFlow
from casenotes.ports.agent import (
    ALERTS_TOOL,
    RUNBOOK_TOOL,
    AgentEvent,
    Answered,
    Chunk,
    Enquiry,
    GraphMoved,
    Progress,
    StepTaken,
    ToolCalled,
)

Script = Callable[[Enquiry], AsyncIterator[AgentEvent]]

ALERT: Mapping[str, object] = {
    "labels": {"alertname": "HighLatency", "service": "checkout"},
    "annotations": {"summary": "p95 over 2 s"},
    "startsAt": "2026-12-01T00:00:00.000Z",
    "status": {"state": "active"},
}


class Scripted:
    """A ``Diagnostician`` that plays a script for each enquiry."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.enquiries: list[Enquiry] = []

    async def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        self.enquiries.append(enquiry)
        async for event in self._script(enquiry):
            yield event


async def usual(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    """A short, honest run of each flow; its rows and its answer carry the question, so that runs differ."""
    match enquiry.flow:
        case AgentFlow.AI_OPS:
            script = _report
        case AgentFlow.STATE_GRAPH:
            script = _graph
        case _:
            script = _chat
    async for event in script(enquiry):
        yield event


async def _chat(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    yield StepTaken("assistant", model="m-1", input=enquiry.question, output="look", input_tokens=7)
    yield ToolCalled("logs.search", {"q": enquiry.question}, {"lines": 3}, duration_ms=4)
    yield Chunk("Found it:\n")
    yield Chunk(f"three lines [T1] for {enquiry.question}")
    yield Answered()


async def _graph(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    run_id = enquiry.run_id
    yield GraphMoved(NodeEntered(run_id, "planner"))
    yield StepTaken("planner", input=enquiry.question, output="SECRET-REASONING look at metrics, then logs")
    yield GraphMoved(NodeEntered(run_id, "executor"))
    yield ToolCalled("metrics.range", {"of": "latency"}, {"series": "RAW-TOOL-OUTPUT"})
    yield GraphMoved(NodeEntered(run_id, "evidence_check"))
    yield GraphMoved(EvidenceRetried(run_id))
    yield GraphMoved(NodeEntered(run_id, "executor"))
    yield ToolCalled("logs.search", {"q": enquiry.question}, "timeout waiting for a connection")
    yield GraphMoved(NodeEntered(run_id, "evidence_check"))
    yield GraphMoved(NodeEntered(run_id, "composer"))
    yield Chunk(f"The pool is exhausted [T1], [T2]: {enquiry.question}")
    yield GraphMoved(GraphEnded(run_id, TerminationReason.COMPOSED))
    yield Answered()


async def _report(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    alerts = [dict(ALERT)] if enquiry.alerts is None else list(enquiry.alerts)
    yield Progress("reading the firing alerts")
    yield StepTaken("operator", step_type="plan", input=enquiry.question)
    yield ToolCalled(ALERTS_TOOL, {}, alerts)
    yield ToolCalled(RUNBOOK_TOOL, {"alertname": "HighLatency"}, "drain the node")
    yield Chunk(
        "# Alerts\n\n- HighLatency fires on checkout [T1]; the runbook says to drain the node [T2]\n\n"
    )
    yield Chunk("Next action: drain the node.\n")
    yield Answered()


async def fallback(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    """A graph that ends in the deterministic fallback."""
    for node in ("planner", "executor", "evidence_check", "fallback"):
        yield GraphMoved(NodeEntered(enquiry.run_id, node))
    yield GraphMoved(GraphEnded(enquiry.run_id, TerminationReason.EVIDENCE_EXHAUSTED))
    yield Answered("What is known is too thin to name a cause.", degraded=True)


def playing(*events: AgentEvent) -> Script:
    """Plays these events; ``Answered`` is added when it is not among them."""

    async def script(_enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        for event in events:
            yield event
        yield Answered()

    return script


def telling(text: str, *, pieces_of: int = 7) -> Script:
    """Tells an answer in small pieces."""
    return playing(*(Chunk(text[i : i + pieces_of]) for i in range(0, len(text), pieces_of)))


def raising(fault: Exception, *before: AgentEvent) -> Script:
    """Plays these events, then raises."""

    async def script(_enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        for event in before:
            yield event
        raise fault

    return script


async def raising_in_graph(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    """A graph that breaks in its executor."""
    yield GraphMoved(NodeEntered(enquiry.run_id, "planner"))
    yield StepTaken("planner", output="SECRET-REASONING")
    yield GraphMoved(NodeEntered(enquiry.run_id, "executor"))
    yield ToolCalled("logs.search", {"q": "x"}, "RAW-TOOL-OUTPUT")
    raise RuntimeError("password=hunter2 in the words of an exception")


class Gate:
    """A script that says it has begun, then waits to be let on; the rest of it is ``usual``."""

    def __init__(self, *before: AgentEvent) -> None:
        self._before = before
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def __call__(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        for event in self._before:
            yield event
        self.reached.set()
        await self.opened.wait()
        async for event in usual(enquiry):
            yield event
