"""Questions asked of the embedded diagnostician."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.diagnosis.asking import SHOP, Recorded, alert, ask, firing

from casenotes.adapters.agents import EmbeddedDiagnostician
from casenotes.adapters.agents.chat import MAX_LOOKUPS
from casenotes.adapters.agents.looking import Looking
from casenotes.adapters.evidence import SHIPPED, read_incident
from casenotes.core.model import MessagePair
from casenotes.core.text import Json, JsonObject
from casenotes.core.words import AgentFlow, StepStatus
from casenotes.ports.agent import ALERTS_TOOL, Chunk, Enquiry, Lookup, Observation, ObservationStatus

CHATS = [AgentFlow.CHAT, AgentFlow.STATE_GRAPH]
QUESTION = "Why is checkout slow?"
DESCRIBED = (
    "Name: {pod}\nContainers:\n  app:\n    Last State: Terminated\n"
    "      Reason: OOMKilled\n      Exit Code: 137\n"
)


@pytest.mark.parametrize("flow", CHATS)
def test_the_shipped_incident_is_solved_with_citations(flow: AgentFlow) -> None:
    incident = read_incident(SHIPPED)
    run = ask(incident.question, flow)
    assert [fact.text for fact in incident.facts if not fact.stated_in(run.answer)] == []
    first = run.answer.partition("\n")[0]
    assert "`DB_POOL_MAX_SIZE` of `payment` was changed from `40` to `4`" in first
    (cited,) = re.findall(r"\[T(\d+)\]", first)
    call = run.calls[int(cited) - 1]
    assert call.tool_name == "deploy_history"
    assert call.arguments["service"] == "payment"
    assert "DB_POOL_MAX_SIZE: 40 -> 4" in str(call.result)


@pytest.mark.parametrize("flow", CHATS)
def test_the_decoy_is_named_and_not_blamed(flow: AgentFlow) -> None:
    answer = ask(QUESTION, flow).answer
    before, _, after = answer.partition("**Also seen, and not taken for the cause**")
    assert "recommendation" not in before
    decoy = next(line for line in after.splitlines() if line.startswith("- CPU usage of `recommendation"))
    assert "no error seen in the log of `payment`, `checkout` names `recommendation`" in decoy
    assert "it began 27 min before the trouble did" in decoy
    assert "p95 latency of `recommendation` kept to its usual level" in decoy
    assert "recommendation" not in answer.partition("**Next**")[2].partition("**Evidence gaps**")[0]


@pytest.mark.parametrize("flow", list(AgentFlow))
def test_the_same_enquiry_gives_the_same_events(flow: AgentFlow) -> None:
    assert ask(QUESTION, flow).but_for_time() == ask(QUESTION, flow).but_for_time()


@pytest.mark.parametrize("flow", CHATS)
def test_no_fact_leaks_into_an_event(flow: AgentFlow) -> None:
    events = repr(ask(QUESTION, flow).events)
    for fact in read_incident(SHIPPED).facts:
        assert fact.text not in events


def test_lookups_are_bounded() -> None:
    logs: list[tuple[str, JsonObject, Json]] = [
        ("kubectl_logs", {"pod": f"web{number}-0"}, "ERROR refused") for number in range(200)
    ]
    run = ask("Why do the pods fail?", AgentFlow.CHAT, Recorded(*logs))
    assert len(run.calls) == MAX_LOOKUPS
    assert "more lookups were possible and not made" in run.answer


@pytest.mark.parametrize("flow", CHATS)
def test_every_statement_of_the_evidence_is_cited(flow: AgentFlow) -> None:
    lines = [line for line in ask(QUESTION, flow).answer.splitlines() if line.startswith("- ")]
    assert lines
    assert [line for line in lines if not re.search(r"\[T\d+\]", line)] == []


def test_a_source_that_fails_is_named() -> None:
    run = ask(QUESTION)
    failed = [number for number, call in enumerate(run.calls, 1) if call.status is StepStatus.FAILED]
    assert len(failed) == 1
    assert (
        f"Failed: `kubectl_top_pods(namespace=shop)`: `error: Metrics API not available` [T{failed[0]}]"
        in run.answer
    )
    assert "Not found: `config_audit" in run.answer


def test_where_no_cause_is_shown_none_is_put_forward() -> None:
    source = Recorded(
        firing(alert("CartSlow", service="cart")), ("kubectl_logs", {"pod": "cart-0"}, "one\ntwo")
    )
    answer = ask("Why is cart slow?", AgentFlow.CHAT, source).answer
    assert answer.startswith("**No fault of `cart` is shown**")
    assert "The log of `cart-0` has 2 lines, none of them an error or a warning [T2]" in answer
    assert "points to" not in answer


def test_what_asks_about_nothing_here_is_told_so() -> None:
    for question in ("hello", "What is the capital of France?", "", "   ", "🙂"):
        run = ask(question)
        assert run.calls == []
        assert "nothing was looked up" in run.answer


def test_a_name_that_nothing_goes_by_is_told_so() -> None:
    answer = ask("Is the search service down?").answer
    assert answer.startswith("**No evidence on `search`:** nothing that was looked at goes by that name")
    assert "points to" not in answer


def test_the_health_of_a_service() -> None:
    assert ask("Is payment ok?").answer.startswith("**The evidence points to this:** `DB_POOL_MAX_SIZE`")
    healthy = ask("Is inventory ok?").answer
    assert healthy.startswith("**No fault of `inventory` is shown**")
    assert "The log of `inventory` has" in healthy


def test_runbook_steps() -> None:
    run = ask("What are the runbook steps?")
    assert {call.tool_name for call in run.calls} == {ALERTS_TOOL, "runbooks.find"}
    assert "The runbook for PaymentConnectionsWaiting tells to do: (1) Set `DB_POOL_MAX_SIZE`" in run.answer


def test_which_alerts_fire() -> None:
    run = ask("Which alerts are firing?")
    assert run.answer.startswith("**3 alerts are firing** [T1].")
    assert [call.tool_name for call in run.calls] == [ALERTS_TOOL]


def earlier(question: str = QUESTION) -> tuple[MessagePair, ...]:
    return (MessagePair("hello", "hi"), MessagePair(question, ask(question).answer))


def test_a_follow_up_is_about_the_subject_of_the_earlier_turns() -> None:
    run = ask("and what about its logs?", conversation=earlier())
    assert "(Taken to be about `checkout`, `payment`, as in the earlier turns.)" in run.answer
    assert "The log of `checkout` says" in run.answer
    assert "Connection is not available" in run.answer
    assert {call.tool_name for call in run.calls} == {ALERTS_TOOL, "logs.search"}


def test_which_pod_is_answered_from_the_earlier_turns() -> None:
    run = ask("which pod?", conversation=earlier())
    line = next(line for line in run.answer.splitlines() if line.startswith("Pods seen: "))
    assert line.startswith("Pods seen: `payment-5f8b6d97c4-x9w2p` [T")
    assert "checkout-7c9d5f6b84-hv4tk" in line
    assert "recommendation" not in line


def test_a_new_subject_is_not_mixed_with_the_earlier_one() -> None:
    answer = ask("Is inventory ok?", conversation=earlier()).answer
    assert answer.startswith("**No fault of `inventory` is shown**")
    assert "earlier turns" not in answer


def test_an_unrelated_question_is_no_follow_up() -> None:
    assert "nothing was looked up" in ask("What is the capital of France?", conversation=earlier()).answer


def test_a_victim_is_not_taken_for_the_cause() -> None:
    source = Recorded(
        firing(alert("LedgerDown", service="ledger")),
        ("kubectl_describe", {"name": "ledger-0"}, DESCRIBED.format(pod="ledger-0")),
        ("top_talkers", {}, "x"),
        ("kubectl_logs", {"pod": "gateway-0"}, "ERROR upstream ledger refused the connection"),
    )
    answer = ask("Why is ledger down?", AgentFlow.CHAT, source).answer
    assert "OOMKilled" in answer.partition("\n")[0]


@pytest.mark.parametrize("flow", CHATS)
def test_sources_that_all_fail_give_an_honest_answer(flow: AgentFlow) -> None:
    source = Recorded(
        ("kubectl_logs", {"pod": "web-0"}, "x"), firing(), failing=["kubectl_logs", ALERTS_TOOL]
    )
    answer = ask("Why is web failing?", flow, source).answer
    assert "it is down" in answer
    assert "points to" not in answer


@pytest.mark.parametrize("flow", list(AgentFlow))
def test_no_source_at_all(flow: AgentFlow) -> None:
    assert "points to" not in ask("Why is web failing?", flow, Recorded()).answer


def test_secrets_in_evidence_do_not_reach_the_answer() -> None:
    source = Recorded(("kubectl_logs", {"pod": "web-0"}, "ERROR login failed password=hunter2secret for web"))
    run = ask("Why is web failing?", AgentFlow.CHAT, source)
    assert "login failed" in run.answer
    assert "hunter2secret" not in run.answer


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=200), st.sampled_from(CHATS))
def test_any_question_gets_an_answer(question: str, flow: AgentFlow) -> None:
    ask(question, flow)


def test_a_run_can_be_left_at_any_event() -> None:
    async def leave(after: int) -> None:
        events = EmbeddedDiagnostician([SHOP]).diagnose(Enquiry("s", "r", QUESTION, AgentFlow.STATE_GRAPH))
        assert isinstance(events, AsyncGenerator)
        for _ in range(after):
            await anext(events)
        await events.aclose()

    for after in (1, 2, 5, 12):
        asyncio.run(leave(after))


def test_many_enquiries_at_once_do_not_touch_each_other() -> None:
    diagnostician = EmbeddedDiagnostician([SHOP])

    async def one(question: str) -> str:
        enquiry = Enquiry("s", "r", question, AgentFlow.CHAT)
        return "".join(
            [event.text async for event in diagnostician.diagnose(enquiry) if isinstance(event, Chunk)]
        )

    async def together() -> list[str]:
        return await asyncio.gather(*(one(question) for question in asked))

    asked = [QUESTION, "Is inventory ok?", "hello"] * 2
    assert asyncio.run(together()) == [ask(question).answer for question in asked]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    JSON,
    st.sampled_from(["kubectl_describe", "kubectl_logs", "metrics.query_range", "deploys", "runbooks.find"]),
)
def test_any_result_of_a_tool_is_survived(result: object, tool: str) -> None:
    source = Recorded(
        (tool, {"name": "web-0"}, json.loads(json.dumps(result))), firing(alert("WebDown", service="web"))
    )
    ask("Why is web down?", AgentFlow.CHAT, source)


def test_a_cpu_limit_is_the_cause_only_where_throttling_is_spoken_of() -> None:
    limited = "Name: encoder-0\nContainers:\n  enc:\n    Limits:\n      cpu:  50m\n"
    described: tuple[str, JsonObject, Json] = ("kubectl_describe", {"name": "encoder-0"}, limited)
    throttled = ask(
        "Why?", AgentFlow.CHAT, Recorded(firing(alert("CPUThrottlingHigh", pod="encoder-0")), described)
    )
    first = throttled.answer.partition("\n")[0]
    assert "Container `enc` of `encoder-0` has CPU limit `50m`; a container is throttled when" in first
    slow = ask("Why?", AgentFlow.CHAT, Recorded(firing(alert("EncoderSlow", pod="encoder-0")), described))
    assert slow.answer.startswith("**No cause is shown")


def test_what_was_looked_up_cannot_be_counted_twice() -> None:
    looking = Looking(SHOP, lambda: 0.0)
    seen = Observation(ObservationStatus.SUCCESS, [])
    looking.take(Lookup(ALERTS_TOOL), seen)
    with pytest.raises(ValueError, match="looked up twice"):
        looking.take(Lookup(ALERTS_TOOL), seen)
