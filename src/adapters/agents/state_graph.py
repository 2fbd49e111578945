"""The flow STATE_GRAPH: planner, executor, evidence check with retries that widen the search, composer or fallback.

A model that fails in the planner or the evidence check does not stop the gathering, which the rules go on with; it
leads to the fallback instead of the composer. One that fails in the composer leads on to the fallback.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from attrs import field, mutable

from casenotes.adapters.agents import composing, planning
from casenotes.adapters.agents.findings.extract import subject_of
from casenotes.adapters.agents.graph import Graph, Step
from casenotes.adapters.agents.investigating import Investigation, listed
from casenotes.adapters.agents.reasoning import RULES, Draft, Reasoner, Rules, taken_over
from casenotes.adapters.agents.sections import is_about
from casenotes.core.orchestration import Node, TerminationReason
from casenotes.core.text import fold
from casenotes.ports.agent import RUNBOOK_TOOL, AgentEvent, Answered, Lookup, StepTaken

MAX_RETRIES = 2
"""How often evidence is gathered anew, each time with a wider search."""

ROUNDS = (10, 8, 6)
"""Lookups of the first round and of each retry, at the most."""

LEAST = (planning.USEFUL, planning.POSSIBLE, planning.ANYTHING)
"""What a lookup must promise, from the narrowest search to the widest."""

STEP_LIMIT = 12

_COMPOSED, _EXHAUSTED = TerminationReason.COMPOSED, TerminationReason.EVIDENCE_EXHAUSTED
_MODEL_FAILED = TerminationReason.MODEL_FAILED
_FALLBACK = Rules("fallback")


@mutable
class GraphState:
    """The state of one run of the graph."""

    investigation: Investigation
    reasoner: Reasoner = RULES
    plan: list[Lookup] = field(factory=list)
    width: int = 0
    retries: int = 0
    degraded: bool = False

    @property
    def found(self) -> bool:
        """Whether anything about the question was found."""
        shown = self.investigation.picture().placed
        return self.investigation.focus.operational and any(is_about(placed) for placed in shown)

    @property
    def enough(self) -> bool:
        """Whether what was asked for was found, or a cause, and no trail is left that leads on from it."""
        asked = composing.answers_topic(self.investigation.focus, self.investigation.picture())
        shown = asked or bool(self.investigation.picture().causes)
        return shown and not self.investigation.trail


async def state_graph(
    investigation: Investigation, reasoner: Reasoner = RULES, step_limit: int = STEP_LIMIT
) -> AsyncIterator[AgentEvent]:
    """Answer the question of this investigation by the graph."""
    state = GraphState(investigation, reasoner)
    async for event in build(step_limit).run(investigation.enquiry.run_id, state):
        yield event
    yield Answered(degraded=state.degraded, self_evaluation=reasoner.found_of_itself)


def build(step_limit: int = STEP_LIMIT) -> Graph[GraphState]:
    """The graph with its edges."""
    return Graph(
        Node.PLANNER,
        {
            Node.PLANNER: Step(_plan, lambda _: Node.EXECUTOR, frozenset({Node.EXECUTOR})),
            Node.EXECUTOR: Step(_execute, lambda _: Node.EVIDENCE_CHECK, frozenset({Node.EVIDENCE_CHECK})),
            Node.EVIDENCE_CHECK: Step(
                _check, _after_check, frozenset({Node.EXECUTOR, Node.COMPOSER, Node.FALLBACK})
            ),
            Node.COMPOSER: Step(_compose, _after_compose, frozenset({_COMPOSED, Node.FALLBACK})),
            Node.FALLBACK: Step(_fall_back, _after_fall_back, frozenset({_EXHAUSTED, _MODEL_FAILED})),
        },
        fallback=Node.FALLBACK,
        limit=step_limit,
        retries=frozenset({(Node.EVIDENCE_CHECK, Node.EXECUTOR)}),
    )


async def _plan(state: GraphState) -> AsyncIterator[AgentEvent]:
    investigation = state.investigation
    async for event in investigation.open():
        yield event
    choice = await state.reasoner.choose(investigation, _planned(state), ROUNDS[0])
    for step in choice.steps:
        yield step
    state.plan = choice.lookups


def _planned(state: GraphState) -> list[Lookup]:
    investigation = state.investigation
    if not investigation.focus.operational:
        return _by_words(state)
    return investigation.plan(LEAST[state.width])[: ROUNDS[state.retries]]


def _by_words(state: GraphState) -> list[Lookup]:
    """A question about nothing known may still have a runbook."""
    lookup = Lookup(RUNBOOK_TOOL, {"text": fold(state.investigation.enquiry.question, 200)})
    known = RUNBOOK_TOOL in state.investigation.source.tools
    return [lookup] if known and state.investigation.looking.made(lookup) is None else []


async def _execute(state: GraphState) -> AsyncIterator[AgentEvent]:
    investigation = state.investigation
    about = f"{investigation.focus.described}, round {state.retries + 1}"
    yield StepTaken("executor", "execute", input=about, output=listed(state.plan))
    async for event in investigation.look(state.plan):
        yield event
    investigation.refocus()


async def _check(state: GraphState) -> AsyncIterator[AgentEvent]:
    said = _verdict(state)
    state.plan = []
    if state.retries < MAX_RETRIES and not state.enough:
        wider, room = _planned_wider(state), ROUNDS[state.retries + 1]
        choice = await state.reasoner.choose(state.investigation, wider, room)
        for step in choice.steps:
            yield step
        state.plan = choice.lookups
    if state.plan:
        state.retries += 1
        said += "; looking again"
    yield StepTaken(
        "evidence_check", "check", input=f"{len(state.investigation.looking.calls)} calls", output=said
    )


def _planned_wider(state: GraphState) -> list[Lookup]:
    """What is still worth looking at; when nothing is, what a wider search allows."""
    plan = _planned(state)
    while not plan and state.width < len(LEAST) - 1:
        state.width += 1
        plan = _planned(state)
    return plan


def _verdict(state: GraphState) -> str:
    if state.enough:
        return "enough"
    if trail := state.investigation.trail:
        return f"the errors lead to {subject_of(trail[0])}"
    return "no cause yet" if state.found else "nothing yet"


def _after_check(state: GraphState) -> Node:
    if state.plan:
        return Node.EXECUTOR
    can_write = state.reasoner.can_write(state.investigation, state.found)
    return Node.COMPOSER if can_write and state.reasoner.failed is None else Node.FALLBACK


async def _compose(state: GraphState) -> AsyncIterator[AgentEvent]:
    case = state.investigation.case(len(state.investigation.plan(planning.USEFUL)))
    draft = Draft(state.investigation.enquiry.question, case.calls, composing.answer(case))
    async for event in state.reasoner.write(draft):
        yield event


def _after_compose(state: GraphState) -> Node | TerminationReason:
    return _COMPOSED if state.reasoner.failed is None else Node.FALLBACK


async def _fall_back(state: GraphState) -> AsyncIterator[AgentEvent]:
    state.degraded = True
    case = state.investigation.case()
    lines = composing.answer(case) if state.found else composing.exhausted(case)
    draft = Draft(state.investigation.enquiry.question, case.calls, lines)
    async for event in taken_over(state.reasoner, draft, _FALLBACK):
        yield event


def _after_fall_back(state: GraphState) -> TerminationReason:
    return _EXHAUSTED if state.reasoner.failed is None else _MODEL_FAILED
