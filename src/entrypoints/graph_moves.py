"""The moves of a STATE_GRAPH run, recorded by the code that executes it: ``run.graph``."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias, TypeVar

from attrs import define, field

from casenotes.core.errors import InvalidInput
from casenotes.core.orchestration import (
    DEGRADED_REASONS,
    EvidenceRetried,
    GraphEnded,
    GraphEvent,
    Node,
    NodeEntered,
    TerminationReason,
)
from casenotes.core.service.recording import Recording
from casenotes.core.words import AgentFlow

Word = TypeVar("Word", bound=StrEnum)
NodeName: TypeAlias = Node | Literal["planner", "executor", "evidence_check", "composer", "fallback"]
Reason: TypeAlias = (
    TerminationReason | Literal["COMPOSED", "EVIDENCE_EXHAUSTED", "STEP_LIMIT", "MODEL_FAILED"]
)

_ANSWERED = frozenset({TerminationReason.COMPOSED, *DEGRADED_REASONS})
"""The reasons with which a graph ends that has an answer; the others are those of a run that fails."""


@define(eq=False)
class GraphMoves:
    """Takes names and nothing else: there is no room for a prompt, an output or a state.

    All three raise ``InvalidInput`` for a run that is not a STATE_GRAPH run, and for a word that is not known. What
    is said after ``ended`` changes nothing.
    """

    _recording: Recording
    _last: Node | None = field(default=None, init=False)
    _reason: TerminationReason | None = field(default=None, init=False)

    def entered(self, node: NodeName) -> None:
        """The graph began to work in this node."""
        known = _known("node", node, frozenset(Node))
        self._move(NodeEntered(self._recording.run.run_id, known))
        if self._reason is None:
            self._last = known

    def retried(self) -> None:
        """The evidence was found too thin, and is gathered once more."""
        self._move(EvidenceRetried(self._recording.run.run_id))

    def ended(self, reason: Reason) -> None:
        """The graph came to its end. All reasons but ``COMPOSED`` are those of the fallback: the run is degraded.

        Not needed after ``composer``, which is ``COMPOSED``. A run that fails has its own reason, whatever was
        said here.
        """
        self._require_graph()
        self._reason = _known("reason", reason, _ANSWERED)

    def settle(self) -> None:
        """Fold the end in, now that the run is answered."""
        reason = self._reason
        if reason is None and self._last is Node.COMPOSER:
            reason = TerminationReason.COMPOSED
        if reason is not None:
            self._recording.moved(GraphEnded(self._recording.run.run_id, reason))

    def _move(self, event: GraphEvent) -> None:
        self._require_graph()
        if self._reason is None:
            self._recording.moved(event)

    def _require_graph(self) -> None:
        if self._recording.run.agent_flow != AgentFlow.STATE_GRAPH:
            raise InvalidInput("flow", "must be 'STATE_GRAPH' for a run that records graph moves")


def _known(name: str, word: str, allowed: frozenset[Word]) -> Word:
    for one in allowed:
        if one == word:
            return one
    raise InvalidInput(name, f"must be one of {', '.join(sorted(allowed))}")
