"""What a StateGraph run did, folded from typed events that have no room for prompt, output or state.

Source: "StateGraph Chat runs SHALL persist a compact orchestration trace".
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeAlias

from attrs import evolve, field, frozen

from casenotes.core.errors import ForeignEvent
from casenotes.core.text import JsonObject

VERSION = 1
START = "START"
MAX_TRANSITIONS = 64
"""Transitions past this many are not kept; the final node is."""


class Node(StrEnum):
    """The nodes of a complex chat's graph."""

    PLANNER = "planner"
    EXECUTOR = "executor"
    EVIDENCE_CHECK = "evidence_check"
    COMPOSER = "composer"
    FALLBACK = "fallback"


class TerminationReason(StrEnum):
    """Why a graph ended."""

    COMPOSED = "COMPOSED"
    EVIDENCE_EXHAUSTED = "EVIDENCE_EXHAUSTED"
    STEP_LIMIT = "STEP_LIMIT"
    MODEL_FAILED = "MODEL_FAILED"
    TIMEOUT = "TIMEOUT"
    ERROR = "ERROR"
    INTERRUPTED = "INTERRUPTED"


DEGRADED_REASONS = frozenset(
    {TerminationReason.EVIDENCE_EXHAUSTED, TerminationReason.STEP_LIMIT, TerminationReason.MODEL_FAILED}
)
"""Reasons for which a run ends in the fallback: SUCCESS, and degraded."""


@frozen
class NodeEntered:
    """The graph of this run began to work in a node."""

    run_id: str
    node: str


@frozen
class EvidenceRetried:
    """The evidence was found too thin and is gathered once more."""

    run_id: str


@frozen
class GraphEnded:
    """The graph came to its end, for this reason."""

    run_id: str
    reason: TerminationReason


GraphEvent: TypeAlias = NodeEntered | EvidenceRetried | GraphEnded


@frozen
class Transition:
    """One move of the graph; the first leaves ``START``."""

    source: str
    target: str


@frozen
class OrchestrationTrace:
    """The compact summary of one run's graph. It holds names, a reason, a flag and a count; nothing else fits."""

    run_id: str
    transitions: tuple[Transition, ...] = ()
    final_node: str | None = None
    termination_reason: TerminationReason | None = None
    evidence_retry_count: int = field(default=0)

    @property
    def degraded(self) -> bool:
        """Whether the graph ended in the deterministic fallback."""
        return self.termination_reason in DEGRADED_REASONS

    def then(self, event: GraphEvent) -> OrchestrationTrace:
        """The trace after one more event.

        Raises ``ForeignEvent`` when the event belongs to another run. An event after the end changes nothing.
        """
        if event.run_id != self.run_id:
            raise ForeignEvent(f"an event of {event.run_id} does not belong to {self.run_id}")
        if self.termination_reason is not None:
            return self
        match event:
            case NodeEntered(node=node):
                move = Transition(self.final_node or START, node)
                kept = (*self.transitions, move)[:MAX_TRANSITIONS]
                return evolve(self, transitions=kept, final_node=node)
            case EvidenceRetried():
                return evolve(self, evidence_retry_count=self.evidence_retry_count + 1)
            case GraphEnded(reason=reason):
                return evolve(self, termination_reason=reason)

    def as_json(self) -> JsonObject:
        """The stored and shown form, as the HTTP contract fixes it."""
        return {
            "version": VERSION,
            "transitions": [{"from": move.source, "to": move.target} for move in self.transitions],
            "finalNode": self.final_node,
            "terminationReason": None if self.termination_reason is None else str(self.termination_reason),
            "degraded": self.degraded,
            "evidenceRetryCount": self.evidence_retry_count,
        }


def fold(run_id: str, events: Iterable[GraphEvent]) -> OrchestrationTrace | None:
    """The trace of these events, in their order; ``None`` when no node was entered: nothing is made up.

    Raises ``ForeignEvent`` when an event belongs to another run.
    """
    trace = OrchestrationTrace(run_id)
    for event in events:
        trace = trace.then(event)
    return trace if trace.transitions else None
