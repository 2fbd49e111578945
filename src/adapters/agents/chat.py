"""The flow CHAT: plan, look, compose."""

from __future__ import annotations

from collections.abc import AsyncIterator

from casenotes.adapters.agents import composing, planning
from casenotes.adapters.agents.investigating import Investigation, listed
from casenotes.ports.agent import AgentEvent, Answered, Chunk, StepTaken

MAX_LOOKUPS = 20
"""Lookups of one run at the most, the most telling first."""

ROUND = 8
"""Lookups until the plan is made anew: what was seen may lead elsewhere."""


async def chat(investigation: Investigation) -> AsyncIterator[AgentEvent]:
    """Answer the question of this investigation directly."""
    question = investigation.enquiry.question
    async for event in investigation.open():
        yield event
    if not investigation.focus.operational:
        for line in composing.nothing_to_look_at(question, sorted(investigation.source.tools)):
            yield Chunk(line)
        yield Answered()
        return
    plan = investigation.plan(planning.USEFUL) or investigation.plan(planning.POSSIBLE)
    while plan and len(investigation.looking.calls) < MAX_LOOKUPS:
        room = min(ROUND, MAX_LOOKUPS - len(investigation.looking.calls))
        yield StepTaken(
            "executor", "execute", input=investigation.focus.described, output=listed(plan[:room])
        )
        async for event in investigation.look(plan[:room]):
            yield event
        investigation.refocus()
        plan = investigation.plan(planning.USEFUL)
        if not plan and not investigation.picture().causes:
            plan = investigation.plan(planning.POSSIBLE)
    case = investigation.case(len(plan))
    lines = composing.answer(case)
    yield StepTaken("composer", "compose", input=f"{len(case.calls)} calls", output=lines[0].strip())
    for line in lines:
        yield Chunk(line)
    yield Answered()
