"""The flow CHAT: plan, look, compose."""

from __future__ import annotations

from collections.abc import AsyncIterator

from casenotes.adapters.agents import composing, planning
from casenotes.adapters.agents.investigating import Investigation, listed
from casenotes.adapters.agents.reasoning import RULES, Draft, Reasoner, written
from casenotes.ports.agent import AgentEvent, Answered, Lookup, StepTaken

MAX_LOOKUPS = 20
"""Lookups of one run at the most, the most telling first."""

ROUND = 8
"""Lookups until the plan is made anew: what was seen may lead elsewhere."""


async def chat(investigation: Investigation, reasoner: Reasoner = RULES) -> AsyncIterator[AgentEvent]:
    """Answer the question of this investigation directly."""
    async for event in investigation.open():
        yield event
    plan = _first_plan(investigation)
    while True:
        made = len(investigation.looking.calls)
        choice = await reasoner.choose(investigation, plan, min(ROUND, MAX_LOOKUPS - made))
        for step in choice.steps:
            yield step
        if not choice.lookups:
            break
        yield StepTaken(
            "executor", "execute", input=investigation.focus.described, output=listed(choice.lookups)
        )
        async for event in investigation.look(choice.lookups):
            yield event
        investigation.refocus()
        plan = _further_plan(investigation)
        if not plan or not made < len(investigation.looking.calls) < MAX_LOOKUPS:
            break
    async for event in written(reasoner, _draft(investigation, len(plan))):
        yield event
    yield Answered(degraded=reasoner.failed is not None, self_evaluation=reasoner.found_of_itself)


def _first_plan(investigation: Investigation) -> list[Lookup]:
    if not investigation.focus.operational:
        return []
    return investigation.plan(planning.USEFUL) or investigation.plan(planning.POSSIBLE)


def _further_plan(investigation: Investigation) -> list[Lookup]:
    plan = investigation.plan(planning.USEFUL)
    if not plan and not investigation.picture().causes:
        plan = investigation.plan(planning.POSSIBLE)
    return plan


def _draft(investigation: Investigation, left_out: int) -> Draft:
    question, case = investigation.enquiry.question, investigation.case(left_out)
    if not investigation.focus.operational and not case.calls:
        lines = composing.nothing_to_look_at(question, sorted(investigation.source.tools))
    else:
        lines = composing.answer(case)
    return Draft(question, case.calls, lines)
