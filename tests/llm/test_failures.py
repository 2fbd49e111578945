"""However the model fails, the run ends well: from the evidence, without it, and saying so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from attrs import frozen
from llm.asking import CAUSE, FLOWS, GOOD_ANSWER, GOOD_PLAN, Asked, Service, service
from support.model_server import (
    KEY,
    Play,
    choosing,
    hanging,
    page,
    refusing,
    saying,
    telling,
    vanishing,
    written,
)
from support.service import Backend

from casenotes.core.words import AgentFlow

SHORT = 0.15
"""Seconds that a model may take where it hangs."""
LONGER = 1.0
"""The same where it has to plan first, on a busy machine."""


@frozen
class Failure:
    """How a model fails: what it plays, and what is said of it."""

    plan: Play
    answer: Play
    why: str
    timeout: float = 10.0


ALWAYS = {
    "429 for ever": Failure(refusing(429), refusing(429), "too many requests (429)"),
    "429 for an hour": Failure(refusing(429, Retry_After="3600"), refusing(429), "too many requests (429)"),
    "500": Failure(refusing(500), refusing(500), "its server failed (500)"),
    "503": Failure(refusing(503), refusing(503), "its server failed (503)"),
    "wrong key": Failure(refusing(401), refusing(401), "did not accept the API key (401)"),
    "no such model": Failure(refusing(404), refusing(404), "refused the request (404)"),
    "hang": Failure(hanging, hanging, f"did not answer within {SHORT:g} s", SHORT),
    "gone": Failure(vanishing, vanishing, "could not be reached"),
    "page": Failure(page, page, "is no completion"),
    "page as JSON": Failure(written("<html>hunter2"), written("<html>hunter2"), "is no completion"),
    "another API": Failure(written('{"choices": [1]}'), page, "is no completion"),
    "a list": Failure(written('["hunter2"]'), page, "is no completion"),
    "refusal": Failure(saying(None, refusal="I am hunter2"), page, "declined to answer"),
    "filtered": Failure(saying("{}", "content_filter"), page, "declined to answer"),
    "nothing": Failure(saying("  "), page, "its answer was empty"),
    "prose": Failure(saying("I would look at the logs."), page, "its plan could not be read"),
    "numbers of nothing": Failure(choosing(0, 77, -1), page, "its plan could not be read"),
}
"""Failures of the planner already; the answer is not even asked for."""

AT_THE_ANSWER = {
    "429 for ever": Failure(GOOD_PLAN, refusing(429), "too many requests (429)"),
    "502": Failure(GOOD_PLAN, refusing(502), "its server failed (502)"),
    "hang": Failure(GOOD_PLAN, hanging, f"did not answer within {LONGER:g} s", LONGER),
    "page": Failure(GOOD_PLAN, page, "is no completion"),
    "whole instead of streamed": Failure(GOOD_PLAN, saying("It is full [T1]."), "is no completion"),
    "cut before it cites": Failure(GOOD_PLAN, telling("The disk", ends=None), "ended in the middle"),
    "error in the stream": Failure(
        GOOD_PLAN, telling("The disk", ends=None, then="error"), "ended in the middle"
    ),
    "refusal": Failure(GOOD_PLAN, telling("", refusal="I am hunter2"), "declined to answer"),
    "filtered": Failure(GOOD_PLAN, telling("The disk", ends="content_filter"), "declined to answer"),
    "nothing": Failure(GOOD_PLAN, telling(""), "its answer was empty"),
    "thoughts alone": Failure(GOOD_PLAN, telling("<think>[T1]"), "its answer was empty"),
    "no citation": Failure(GOOD_PLAN, telling("Turn it off and on.\n" * 9), "cites no evidence"),
}
"""Failures of the composer, before anything of the answer was sent."""

WORDS = "The disk is full [T2].\nIt began wh"
AFTER_WORDS = {
    "cut": Failure(GOOD_PLAN, telling(WORDS, ends=None), "ended in the middle"),
    "hang": Failure(GOOD_PLAN, telling(WORDS, then="hang"), "did not answer within", LONGER),
    "too long": Failure(GOOD_PLAN, telling(WORDS, ends="length"), "did not end"),
    "error": Failure(GOOD_PLAN, telling(WORDS, ends=None, then="error"), "ended in the middle"),
}
"""Ways not to end an answer of which a part was sent."""


def never_shown(asked: Asked) -> None:
    """Neither the key nor a word of the server stands anywhere in the trace."""
    assert KEY not in asked.body and "hunter2" not in asked.body


def ended_well(asked: Asked, flow: AgentFlow, why: str) -> None:
    assert asked.run["status"] == "SUCCESS"
    assert asked.run["degraded"] is True
    assert asked.answer == asked.trace["answer"]
    assert asked.answer.count("What follows was made without it.") == 1
    assert why in asked.answer
    assert CAUSE in asked.answer, "the evidence was gathered and read all the same"
    assert asked.steps[-1]["status"] == "FAILED" and why in asked.last_error
    assert asked.trace["selfEvaluation"]["model"]["failure"] is not None
    if flow is AgentFlow.STATE_GRAPH:
        assert asked.orchestration["terminationReason"] == "MODEL_FAILED"
        assert asked.orchestration["degraded"] is True and asked.path[-1] == "fallback"
        agents = {step["agentName"] for step in asked.trace["agentSteps"]}
        assert agents == set(asked.path)
    else:
        assert asked.run["orchestrationTrace"] is None
    if flow is AgentFlow.AI_OPS:
        evaluation = asked.trace["selfEvaluation"]["aiops_rule_evaluation"]
        assert evaluation["passed"], evaluation
    never_shown(asked)


async def each(
    backend: Backend,
    failures: dict[str, Failure],
    check: Callable[[Service, AgentFlow, str], Awaitable[None]],
) -> None:
    """Check every failure in every flow, over one service for those that may take equally long."""
    for timeout in sorted({failure.timeout for failure in failures.values()}):
        async with service(backend, patience=timeout) as here:
            for name, failure in failures.items():
                if failure.timeout != timeout:
                    continue
                here.model.plan, here.model.answer = failure.plan, failure.answer
                here.model.asked.clear()
                for flow in FLOWS:
                    try:
                        await check(here, flow, failure.why)
                    except Exception as fault:
                        fault.add_note(f"where the model fails by: {name}, in {flow}")
                        raise


def test_a_model_that_fails_at_once_is_not_asked_again(backend: Backend) -> None:
    async def check(here: Service, flow: AgentFlow, why: str) -> None:
        ended_well(await here.ask(flow), flow, why)
        assert not any(request.get("stream") for request in here.model.asked)

    asyncio.run(each(backend, ALWAYS, check))


def test_a_model_that_fails_before_it_said_anything_is_replaced(backend: Backend) -> None:
    async def check(here: Service, flow: AgentFlow, why: str) -> None:
        asked = await here.ask(flow)
        ended_well(asked, flow, why)
        if flow is AgentFlow.STATE_GRAPH:
            assert asked.path[-2:] == ["composer", "fallback"]

    asyncio.run(each(backend, AT_THE_ANSWER, check))


def test_what_was_said_already_stays_and_the_cut_is_told(backend: Backend) -> None:
    async def check(here: Service, flow: AgentFlow, why: str) -> None:
        asked = await here.ask(flow)
        assert (asked.run["status"], asked.run["degraded"]) == ("SUCCESS", True)
        assert asked.answer == asked.trace["answer"]
        said, told, rest = asked.answer.partition(
            "\n\n**The model's answer was cut here; what follows was made without it.**\n\n"
        )
        assert told and said.endswith(WORDS)
        assert CAUSE in rest
        assert (asked.steps[-1]["status"], asked.steps[-1]["output"]) == ("FAILED", WORDS)
        assert why in asked.last_error
        if flow is AgentFlow.STATE_GRAPH:
            assert asked.orchestration["terminationReason"] == "MODEL_FAILED"
            assert asked.path[-2:] == ["composer", "fallback"]
        never_shown(asked)

    asyncio.run(each(backend, AFTER_WORDS, check))


@pytest.mark.parametrize("flow", [AgentFlow.CHAT, AgentFlow.STATE_GRAPH])
def test_an_empty_plan_for_a_question_that_needs_evidence_is_none(backend: Backend, flow: AgentFlow) -> None:
    async def play() -> None:
        async with service(backend, choosing(), GOOD_ANSWER) as here:
            ended_well(await here.ask(flow), flow, "its plan was empty")

    asyncio.run(play())


def test_a_cut_code_block_is_closed(memory: Backend) -> None:
    async def play() -> None:
        async with service(memory, GOOD_PLAN, telling("Full [T2]:\n```\ndf -h", ends=None)) as here:
            asked = await here.ask(AgentFlow.CHAT)
            assert "df -h\n```\n\n**The model's answer was cut here" in asked.answer

    asyncio.run(play())


@pytest.mark.parametrize("flow", FLOWS)
def test_a_model_that_may_take_longer_than_the_run_does_not_use_up_its_time(
    memory: Backend, flow: AgentFlow
) -> None:
    async def play() -> None:
        async with service(memory, hanging, hanging, patience=600.0, run_timeout=0.5) as here:
            ended_well(await here.ask(flow), flow, "did not answer within 0.")

    asyncio.run(play())
