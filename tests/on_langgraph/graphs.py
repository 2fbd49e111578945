"""Graphs as users build them."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from casenotes.adapters.agents.langgraph import AnyGraph


@tool
async def search_logs(q: str) -> str:
    """Search the logs."""
    await asyncio.sleep(0)
    return f"312 hits for {q}"


@tool
def broken(q: str) -> str:
    """A tool that fails."""
    raise RuntimeError("hunter2")


def question(state: MessagesState) -> str:
    """What was asked last."""
    return str(next(m.content for m in reversed(state["messages"]) if m.type == "human"))


async def agent(state: MessagesState) -> dict[str, Any]:
    """A model that searches twice, then answers; what it does follows from the question."""
    asked = question(state)
    if isinstance(state["messages"][-1], ToolMessage):
        usage = {"input_tokens": 40, "output_tokens": 7, "total_tokens": 47}
        found = f"It is the pool [T1], and [T9]: {asked}"
        return {"messages": [AIMessage(found, usage_metadata=usage, response_metadata={"model_name": "m-1"})]}
    calls = [{"name": "search_logs", "args": {"q": f"{asked} {n}"}, "id": f"c-{asked}-{n}"} for n in (1, 2)]
    return {"messages": [AIMessage("", tool_calls=calls)]}


def is_done(state: MessagesState) -> str:
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else END


def agent_with_tools() -> AnyGraph:
    """The usual loop of a model and its tools."""
    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", ToolNode([search_logs]))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", is_done, ["tools", END])
    graph.add_edge("tools", "agent")
    return graph.compile()


def in_a_row(*nodes: tuple[str, Any], checkpointer: Any = None) -> AnyGraph:
    """These nodes, one after the other."""
    graph = StateGraph(MessagesState)
    before = START
    for name, node in nodes:
        graph.add_node(name, node)
        graph.add_edge(before, name)
        before = name
    graph.add_edge(before, END)
    return graph.compile(checkpointer=checkpointer)
