"""Graphs of LangGraph on record: what they did, under the names that they gave it."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt
from langsmith.utils import get_env_var, tracing_is_enabled
from on_langgraph.graphs import agent, agent_with_tools, broken, in_a_row
from support.service import Backend, Running

from casenotes.adapters.agents.langgraph import AnyGraph, LangGraphDiagnostician
from casenotes.core.words import AgentFlow
from casenotes.ports.agent import AgentEvent, Answered, Enquiry

GUIDE = Path(__file__).parents[2] / "docs" / "langgraph.md"


def recorded(backend: Backend, graph: AnyGraph, flow: str = "graph", **options: Any) -> dict[str, Any]:
    """The trace of one question that this graph answered, with the answer to the request."""
    found: dict[str, Any] = {}

    async def scenario(here: Running) -> None:
        made = await here.client.ask("why", "s-1", flow=flow)
        found.update((await here.client.trace("s-1", made["runId"])).data, made=made)

    backend.run(scenario, LangGraphDiagnostician(graph, **options))
    return found


def path(trace: dict[str, Any]) -> list[str]:
    return [move["to"] for move in trace["run"]["orchestrationTrace"]["transitions"]]


def test_nodes_tools_and_models_are_on_record(backend: Backend) -> None:
    trace = recorded(backend, agent_with_tools())
    assert path(trace) == ["agent", "tools", "agent"]
    orchestration = trace["run"]["orchestrationTrace"]
    assert (orchestration["terminationReason"], orchestration["finalNode"]) == ("COMPOSED", "agent")
    assert trace["answer"] == "It is the pool [T1], and [unsupported]: why"
    assert trace["made"]["degraded"] is False
    asked, tools, said = trace["agentSteps"]
    assert [step["agentName"] for step in (asked, tools, said)] == ["agent", "tools", "agent"]
    assert asked["output"] == 'search_logs({"q":"why 1"})\nsearch_logs({"q":"why 2"})'
    assert (said["model"], said["inputTokens"], said["outputTokens"]) == ("m-1", 40, 7)
    assert said["output"].startswith("It is the pool [T1]")
    calls = [
        (c["toolName"], c["arguments"], c["result"], c["stepSequence"]) for c in trace["toolInvocations"]
    ]
    assert calls == [
        ("search_logs", {"q": "why 1"}, "312 hits for why 1", tools["sequence"]),
        ("search_logs", {"q": "why 2"}, "312 hits for why 2", tools["sequence"]),
    ]


def test_a_graph_answers_a_plain_chat_and_alerts_without_an_orchestration_trace(memory: Backend) -> None:
    assert recorded(memory, agent_with_tools(), "chat")["run"]["orchestrationTrace"] is None


def test_a_graph_that_does_not_end_is_answered_for_by_the_fallback(backend: Backend) -> None:
    trace = recorded(backend, agent_with_tools(), recursion_limit=2)
    assert (trace["run"]["status"], trace["run"]["degraded"]) == ("SUCCESS", True)
    assert path(trace) == ["agent", "tools", "fallback"]
    assert trace["run"]["orchestrationTrace"]["terminationReason"] == "STEP_LIMIT"
    assert trace["answer"] == (
        "**The graph did not come to an end within 2 steps.**\n\n"
        "What was looked at by then:\n\n- `search_logs` [T1].\n- `search_logs` [T2].\n"
    )


async def raising(state: MessagesState) -> dict[str, Any]:
    raise ValueError("hunter2")


async def telling(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage("It failed [T1].")]}


async def waiting(state: MessagesState) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


def test_a_node_that_raises_fails_the_run_and_is_the_last_on_record(backend: Backend) -> None:
    trace = recorded(backend, in_a_row(("first", agent), ("second", raising), ("third", agent)))
    assert (trace["run"]["status"], trace["answer"]) == ("FAILED", None)
    assert path(trace) == ["first", "second"]
    assert trace["run"]["orchestrationTrace"]["terminationReason"] == "ERROR"
    assert [step["status"] for step in trace["agentSteps"]] == ["SUCCESS", "FAILED"]
    assert "hunter2" not in str(trace)


def test_a_node_that_has_not_ended_is_not_on_record(memory: Backend) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("raises", raising)
    graph.add_node("waits", waiting)
    graph.add_edge(START, "raises")
    graph.add_edge(START, "waits")
    assert path(recorded(memory, graph.compile())) == ["raises"]


def test_a_tool_that_fails_is_marked(memory: Backend) -> None:
    async def asks(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("", tool_calls=[{"name": "broken", "args": {"q": "x"}, "id": "c"}])]}

    tools = ToolNode([broken], handle_tool_errors="it failed")
    trace = recorded(memory, in_a_row(("asks", asks), ("tools", tools), ("tells", telling)))
    (call,) = trace["toolInvocations"]
    assert (call["status"], call["result"], call["errorMessage"]) == (
        "FAILED",
        "it failed",
        "the tool failed",
    )
    assert "hunter2" not in str(trace)


def test_a_graph_within_is_on_record_once_and_is_one_node(memory: Backend) -> None:
    trace = recorded(memory, in_a_row(("inner", agent_with_tools()), ("after", telling)))
    assert path(trace) == ["inner", "after"]
    assert [step["agentName"] for step in trace["agentSteps"]] == [
        "agent",
        "tools",
        "agent",
        "inner",
        "after",
    ]
    assert len(trace["toolInvocations"]) == 2


def test_earlier_turns_are_given_and_not_taken_for_steps(memory: Backend) -> None:
    async def echo(state: MessagesState) -> dict[str, Any]:
        told = [str(message.content) for message in state["messages"]]
        return {"messages": [*state["messages"], AIMessage(" | ".join(told))]}

    async def scenario(here: Running) -> None:
        first = await here.client.ask("one", "s-1", flow="graph")
        second = await here.client.ask("two", "s-1", flow="graph")
        assert (first["answer"], second["answer"]) == ("one", "one | one | two")
        trace = (await here.client.trace("s-1", second["runId"])).data
        assert [step["output"] for step in trace["agentSteps"]] == ["one | one | two"]

    memory.run(scenario, LangGraphDiagnostician(in_a_row(("echo", echo))))


def test_a_graph_that_stops_to_ask_is_answered_for(memory: Backend) -> None:
    def asks(_state: MessagesState) -> dict[str, Any]:
        interrupt("may I?")
        return {}

    trace = recorded(memory, in_a_row(("asks", asks), checkpointer=InMemorySaver()))
    assert (trace["run"]["status"], trace["run"]["degraded"]) == ("SUCCESS", True)
    assert path(trace) == ["asks", "fallback"]
    assert trace["answer"] == "**The graph stopped to ask someone, which cannot be done here.**\n"


def test_a_graph_over_another_state_tells_how_it_is_read(memory: Backend) -> None:
    class Notes(TypedDict):
        question: str
        found: list[str]

    async def look(state: Notes) -> dict[str, Any]:
        return {"found": [f"password=hunter2 in {state['question']}"]}

    graph = StateGraph(Notes)
    graph.add_node("look", look)
    graph.add_edge(START, "look")
    graph.add_edge("look", END)
    trace = recorded(
        memory,
        graph.compile(),
        make_input=lambda enquiry: {"question": enquiry.question, "found": []},
        read_answer=lambda state: state["found"][0],
    )
    assert trace["answer"] == "password=[redacted:password] in why"
    (step,) = trace["agentSteps"]
    assert (step["agentName"], step["output"]) == (
        "look",
        '{"found":["password=[redacted:password] in why"]}',
    )


def test_without_an_answer_there_is_a_fallback(memory: Backend) -> None:
    trace = recorded(memory, in_a_row(("agent", agent)))
    assert path(trace) == ["agent", "fallback"]
    assert trace["answer"] == "**The graph ended without an answer.**\n"


async def events_of(graph: AnyGraph) -> list[AgentEvent]:
    enquiry = Enquiry("s", "r", "why", AgentFlow.CHAT)
    return [event async for event in LangGraphDiagnostician(graph).diagnose(enquiry)]


def traced(monkeypatch: pytest.MonkeyPatch, setting: str | None) -> list[bool]:
    """Whether tracing is on inside a node, and afterwards around the run."""
    seen: list[bool] = []
    environment: Any = get_env_var  # it remembers

    async def look(_state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        seen.append(bool(tracing_is_enabled()))
        return {"messages": [AIMessage("done")]}

    for name in ("TRACING", "TRACING_V2"):
        for family in ("LANGSMITH", "LANGCHAIN"):
            monkeypatch.delenv(f"{family}_{name}", raising=False)
    if setting is not None:
        monkeypatch.setenv(setting, "true")
    environment.cache_clear()
    try:

        async def run() -> None:
            assert isinstance((await events_of(in_a_row(("look", look))))[-1], Answered)
            seen.append(bool(tracing_is_enabled()))

        asyncio.run(run())
    finally:
        monkeypatch.undo()
        environment.cache_clear()
    return seen


def test_nothing_is_traced_to_an_outside_service_unless_it_was_turned_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert traced(monkeypatch, None) == [False, False]


def test_a_run_that_is_given_up_leaves_no_task_behind() -> None:
    async def play() -> None:
        graph = in_a_row(("agent", agent), ("waits", waiting))
        enquiry = Enquiry("s", "r", "why", AgentFlow.STATE_GRAPH)
        events = LangGraphDiagnostician(graph).diagnose(enquiry)
        async with aclosing(events) as running:  # type: ignore[type-var]
            async for _ in running:
                break
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(play())


def test_the_graph_of_the_guide_is_recorded(memory: Backend, tmp_path: Path) -> None:
    block = re.search(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert block is not None
    code = block.group(1)
    graph_lines = code.partition("# --- record it")[0].strip().splitlines()
    assert len([line for line in graph_lines if line.strip()]) <= 15
    names: dict[str, Any] = {"__name__": "guide"}
    code = code.replace("sqlite:///runs.db", f"sqlite:///{tmp_path / 'runs.db'}")
    exec(compile(code, str(GUIDE), "exec", dont_inherit=True), names)
    trace = asyncio.run(names["main"]())
    assert [move["to"] for move in trace.run.orchestration_trace["transitions"]] == ["look", "answer"]
    assert [tool.tool_name for tool in trace.tool_invocations] == ["search_logs"]
    assert trace.answer == "The pool is exhausted. [T1]"
