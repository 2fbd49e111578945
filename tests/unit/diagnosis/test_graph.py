"""The graph of a complex chat: its paths, and the engine that keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from unit.diagnosis.asking import NOW, Recorded, alert, ask, firing

from casenotes.adapters.agents.graph import Graph, Move, Step, UndeclaredMove
from casenotes.adapters.agents.investigating import Investigation
from casenotes.adapters.agents.state_graph import MAX_RETRIES, state_graph
from casenotes.core.orchestration import Node, OrchestrationTrace, TerminationReason, fold
from casenotes.core.text import Json, JsonObject
from casenotes.core.words import AgentFlow
from casenotes.ports.agent import AgentEvent, Answered, Enquiry, GraphMoved, StepTaken

P, E, C, M, F = Node.PLANNER, Node.EXECUTOR, Node.EVIDENCE_CHECK, Node.COMPOSER, Node.FALLBACK
WELL = TerminationReason.COMPOSED
ASKED = "Why is web down?"
WEB = firing(alert("WebDown", service="web"))


def path(trace: OrchestrationTrace | None) -> list[str]:
    assert trace is not None
    return [move.target for move in trace.transitions]


def test_enough_evidence_is_composed_at_once() -> None:
    source = Recorded(WEB, ("kubectl_logs", {"pod": "web-0"}, "ERROR no space left on device"))
    run = ask(ASKED, AgentFlow.STATE_GRAPH, source)
    assert path(run.trace) == [P, E, C, M]
    assert run.trace is not None
    assert (run.trace.termination_reason, run.trace.evidence_retry_count) == (WELL, 0)
    assert not run.degraded


def test_thin_evidence_is_gathered_again_and_wider() -> None:
    elsewhere: tuple[str, JsonObject, Json] = ("kubectl_logs", {"pod": "db-0"}, "one\ntwo")
    source = Recorded(WEB, ("kubectl_logs", {"pod": "web-0"}, "WARN slow"), elsewhere)
    run = ask(ASKED, AgentFlow.STATE_GRAPH, source)
    assert path(run.trace) == [P, E, C, E, C, M]
    assert run.trace is not None
    assert run.trace.evidence_retry_count == 1
    assert run.calls[-1].arguments == {"pod": "db-0"}
    assert run.answer.startswith("**No cause is shown about `web`**")


def test_a_trail_is_followed_before_the_answer() -> None:
    trace = ask("Why is checkout slow?", AgentFlow.STATE_GRAPH).trace
    assert path(trace) == [P, E, C, E, C, M]


@pytest.mark.parametrize("asked", [ASKED, "What is the capital of France?"])
def test_where_nothing_is_found_the_fallback_says_so(asked: str) -> None:
    run = ask(asked, AgentFlow.STATE_GRAPH, Recorded(firing(), ("kubectl_logs", {"pod": "web-0"}, None)))
    assert path(run.trace)[-1] == F
    assert run.trace is not None
    assert run.trace.termination_reason is TerminationReason.EVIDENCE_EXHAUSTED
    assert run.degraded
    assert run.answer.startswith("**Nothing was found on")


def test_evidence_is_gathered_again_no_more_often_than_allowed() -> None:
    logs: list[tuple[str, JsonObject, Json]] = [
        ("kubectl_logs", {"pod": f"p-{n}"}, "fine") for n in range(60)
    ]
    run = ask(ASKED, AgentFlow.STATE_GRAPH, Recorded(WEB, *logs))
    assert run.trace is not None
    assert run.trace.evidence_retry_count == MAX_RETRIES


def test_every_node_that_ran_took_a_step() -> None:
    run = ask("Why is checkout slow?", AgentFlow.STATE_GRAPH)
    assert [step.agent_name for step in run.steps] == path(run.trace)


def collected(events: AsyncIterator[AgentEvent]) -> list[AgentEvent]:
    async def collect() -> list[AgentEvent]:
        return [event async for event in events]

    return asyncio.run(collect())


def traced(events: list[AgentEvent]) -> OrchestrationTrace | None:
    return fold("r", (event.event for event in events if isinstance(event, GraphMoved)))


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_step_limit_ends_in_the_fallback(limit: int) -> None:
    enquiry = Enquiry("s", "r", "Why is checkout slow?", AgentFlow.STATE_GRAPH)
    source = Recorded(WEB, ("kubectl_logs", {"pod": "checkout-0"}, "ERROR x"))
    events = collected(
        state_graph(Investigation(enquiry, source, lambda: 0.0, lambda: NOW), step_limit=limit)
    )
    trace = traced(events)
    assert path(trace) == [*[P, E, C][:limit], F]
    assert trace is not None
    assert trace.termination_reason is TerminationReason.STEP_LIMIT
    assert events[-1] == Answered(degraded=True)


def work(name: str) -> Callable[[list[str]], AsyncIterator[AgentEvent]]:
    async def run(ran: list[str]) -> AsyncIterator[AgentEvent]:
        ran.append(name)
        yield StepTaken(name)

    return run


def step(name: str, to: Move, *moves: Move) -> Step[list[str]]:
    return Step(work(name), lambda _: to, frozenset(moves or (to,)))


def test_a_trace_names_a_node_only_when_it_runs() -> None:
    graph = Graph(P, {P: step("p", M), M: step("m", WELL)}, fallback=M, limit=5)
    ran: list[str] = []

    async def names() -> list[str]:
        seen = []
        async for event in graph.run("r", ran):
            if isinstance(event, GraphMoved):
                seen.append(f"{type(event.event).__name__} after {''.join(ran)}")
        return seen

    assert asyncio.run(names()) == ["NodeEntered after ", "NodeEntered after p", "GraphEnded after pm"]


def test_an_undeclared_move_is_refused_before_it_is_made() -> None:
    graph = Graph(P, {P: step("p", E, M), E: step("e", WELL), M: step("m", E, WELL, E)}, fallback=M, limit=5)
    ran: list[str] = []
    with pytest.raises(UndeclaredMove, match="planner -> executor"):
        collected(graph.run("r", ran))
    assert ran == ["p"]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ({P: step("p", E)}, "unknown node: executor"),
        ({P: step("p", WELL), E: step("e", WELL)}, "never reached: executor"),
        ({P: step("p", E), E: step("e", P)}, "no end can be reached"),
        ({E: step("e", WELL)}, "unknown node: planner"),
        ({P: Step(work("p"), lambda _: WELL, frozenset())}, "leads nowhere"),
    ],
)
def test_a_graph_is_checked_when_it_is_built(steps: dict[Node, Step[list[str]]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Graph(P, steps, fallback=P, limit=5)


def test_a_retry_must_be_an_edge() -> None:
    with pytest.raises(ValueError, match="is a retry and no edge"):
        Graph(P, {P: step("p", WELL)}, fallback=P, limit=5, retries=frozenset({(P, E)}))
