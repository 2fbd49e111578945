"""A small graph engine: declared edges, a step limit, and a trace that names only nodes that ran."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Generic, TypeAlias, TypeVar

from attrs import frozen

from casenotes.core.orchestration import EvidenceRetried, GraphEnded, Node, NodeEntered, TerminationReason
from casenotes.ports.agent import AgentEvent, GraphMoved

State = TypeVar("State")

Work: TypeAlias = Callable[[State], AsyncIterator[AgentEvent]]
"""What a node does; it yields its events and changes the state."""

Move: TypeAlias = "Node | TerminationReason"
"""Where the graph goes next, or why it ends."""


class UndeclaredMove(RuntimeError):
    """A node chose a move that the graph does not declare: a fault in the graph, not in the evidence."""


@frozen
class Step(Generic[State]):
    """A node: its work, how it chooses what comes next, and every move that it may choose."""

    work: Work[State]
    choose: Callable[[State], Move]
    moves: frozenset[Move]


class Graph(Generic[State]):
    """A graph over ``Node``. Checked when it is built: every move leads to a node that exists or ends the graph,
    every node can be reached, and from every node an end can be reached; else ``ValueError``.

    ``retries`` are the moves that gather evidence once more. At ``limit`` steps the graph goes to ``fallback``,
    which is one step more, and ends with ``STEP_LIMIT``.
    """

    def __init__(
        self,
        start: Node,
        steps: Mapping[Node, Step[State]],
        *,
        fallback: Node,
        limit: int,
        retries: frozenset[tuple[Node, Node]] = frozenset(),
    ) -> None:
        self._start, self._steps, self._fallback = start, dict(steps), fallback
        self._limit, self._retries = limit, retries
        self._check()

    async def run(self, run_id: str, state: State) -> AsyncIterator[AgentEvent]:
        """Run to the end. ``GraphEnded`` is the last event.

        Raises ``UndeclaredMove`` before the graph would enter a node by an undeclared edge.
        """
        node = self._start
        for _ in range(self._limit):
            async for event in self._enter(run_id, node, state):
                yield event
            chosen = self._steps[node].choose(state)
            if chosen not in self._steps[node].moves:
                raise UndeclaredMove(f"{node} -> {chosen}")
            if isinstance(chosen, TerminationReason):
                yield GraphMoved(GraphEnded(run_id, chosen))
                return
            if (node, chosen) in self._retries:
                yield GraphMoved(EvidenceRetried(run_id))
            node = chosen
        async for event in self._enter(run_id, self._fallback, state):
            yield event
        yield GraphMoved(GraphEnded(run_id, TerminationReason.STEP_LIMIT))

    async def _enter(self, run_id: str, node: Node, state: State) -> AsyncIterator[AgentEvent]:
        yield GraphMoved(NodeEntered(run_id, node))
        async for event in self._steps[node].work(state):
            yield event

    def _check(self) -> None:
        if self._limit < 1:
            raise ValueError("a graph needs room for a step")
        for node in (self._start, self._fallback):
            self._known(node)
        for node, step in self._steps.items():
            for move in step.moves:
                if isinstance(move, Node):
                    self._known(move)
            if not step.moves:
                raise ValueError(f"{node} leads nowhere")
        for source, target in self._retries:
            if target not in self._steps[source].moves:
                raise ValueError(f"{source} -> {target} is a retry and no edge")
        unreached = set(self._steps) - self._reach(self._start) - {self._fallback}
        if unreached:
            raise ValueError(f"never reached: {', '.join(sorted(unreached))}")
        for node in self._steps:
            ends = any(
                isinstance(move, TerminationReason)
                for reached in self._reach(node)
                for move in self._steps[reached].moves
            )
            if not ends:
                raise ValueError(f"no end can be reached from {node}")

    def _known(self, node: Node) -> None:
        if node not in self._steps:
            raise ValueError(f"unknown node: {node}")

    def _reach(self, start: Node) -> set[Node]:
        reached: set[Node] = set()
        ahead = [start]
        while ahead:
            node = ahead.pop()
            if node not in reached:
                reached.add(node)
                ahead += [move for move in self._steps[node].moves if isinstance(move, Node)]
        return reached
