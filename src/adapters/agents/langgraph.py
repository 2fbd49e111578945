"""Any compiled LangGraph graph as a ``Diagnostician``. Needs the extra ``langgraph``.

What is recorded is derived from the graph's ``tasks`` stream, from the events that tell that a task has ended: one that
is only about to begin may never run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import nullcontext
from contextvars import Context, copy_context
from typing import Any, TypeAlias

from attrs import define, field
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError
from langgraph.pregel import Pregel
from langsmith.run_helpers import tracing_context
from langsmith.utils import tracing_is_enabled

from casenotes.adapters.agents.langgraph_messages import Reading, text_of
from casenotes.core.orchestration import GraphEnded, GraphEvent, Node, NodeEntered, TerminationReason
from casenotes.core.text import clean_json, fold, json_text
from casenotes.core.words import AgentFlow
from casenotes.ports.agent import (
    AgentEvent,
    Answered,
    Chunk,
    Enquiry,
    GraphMoved,
    StepTaken,
    ToolCalled,
)

AnyGraph: TypeAlias = Pregel[Any, Any, Any, Any]
MakeInput: TypeAlias = Callable[[Enquiry], Any]
ReadAnswer: TypeAlias = Callable[[Any], str | None]

RECURSION_LIMIT = 25
"""Steps of the graph, in which nodes that run side by side are one."""

_MAX_LISTED = 20
_END = object()


def as_messages(enquiry: Enquiry) -> dict[str, list[BaseMessage]]:
    """The input of a graph over messages: the earlier turns and the question, with the alerts if there are any."""
    messages: list[BaseMessage] = []
    for turn in enquiry.conversation:
        messages += [HumanMessage(turn.question), AIMessage(turn.answer)]
    alerts = f"\n\nAlerts: {json_text(clean_json(enquiry.alerts))}" if enquiry.alerts else ""
    return {"messages": [*messages, HumanMessage(enquiry.question + alerts)]}


def last_message(state: Any) -> str | None:
    """The answer of a graph over messages: the last one, when it is the model's and asks for no tool."""
    messages = state.get("messages") if isinstance(state, Mapping) else None
    last = messages[-1] if messages else None
    return text_of(last) if isinstance(last, AIMessage) and not last.tool_calls else None


@define
class LangGraphDiagnostician:
    """A ``Diagnostician`` that runs a compiled graph, once for each enquiry, under a thread id of its own.

    ``make_input`` makes the graph's input of an enquiry, ``read_answer`` the answer of its last state; without them
    the graph is one over messages. In a complex chat the graph's own nodes make the orchestration trace, under their
    own names; those of graphs within it take steps and make calls, and are not in the trace. A graph that does not
    end within ``recursion_limit`` steps, or ends without an answer, is answered for by the fallback: ``degraded``,
    with the calls that it made. An exception of a node fails the run. Nothing is traced to an outside service unless
    tracing was turned on, by the environment or around this call.
    """

    graph: AnyGraph
    recursion_limit: int = RECURSION_LIMIT
    make_input: MakeInput = as_messages
    read_answer: ReadAnswer = last_message
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    async def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        """The events of the run, ``Answered`` last."""
        run = _Run(enquiry, self.clock)
        asked = self.make_input(enquiry)
        run.reading.know(asked)
        config: RunnableConfig = {
            "recursion_limit": self.recursion_limit,
            "configurable": {"thread_id": enquiry.run_id},
        }
        # Nothing of the graph's may be left in the context of the one who records.
        parts = _in_own_context(
            lambda: self.graph.astream(asked, config, stream_mode=["tasks", "values"], subgraphs=True)
        )
        try:
            async for namespace, mode, part in parts:
                if mode == "tasks":
                    for event in run.task(namespace, part):
                        yield event
                elif not namespace:
                    run.state = part
        except GraphRecursionError:
            words = f"The graph did not come to an end within {self.recursion_limit} steps."
            reason = TerminationReason.STEP_LIMIT
        else:
            answer = None if run.interrupted else self.read_answer(run.state)
            if answer is not None and answer.strip():
                yield Chunk(answer)
                for event in run.moved(GraphEnded(enquiry.run_id, TerminationReason.COMPOSED)):
                    yield event
                yield Answered()
                return
            asks = "The graph stopped to ask someone, which cannot be done here."
            words = asks if run.interrupted else "The graph ended without an answer."
            reason = TerminationReason.MODEL_FAILED
        finally:
            await parts.aclose()
        for event in run.fall_back(words, reason):
            yield event


@define
class _Run:
    """What is known of one run of the graph."""

    enquiry: Enquiry
    clock: Callable[[], float]
    reading: Reading = field(factory=Reading)
    state: Any = None
    interrupted: bool = False
    _begun: dict[str, float] = field(factory=dict)
    _called: list[str] = field(factory=list)

    def task(self, namespace: tuple[str, ...], task: Mapping[str, Any]) -> list[AgentEvent]:
        """The events of a task that begins, of which there are none, or has ended."""
        if "result" not in task:
            self._begun[task["id"]] = self.clock()
            return []
        began = self._begun.pop(task["id"], None)
        took = None if began is None else round((self.clock() - began) * 1000)
        self.interrupted = self.interrupted or bool(task.get("interrupts"))
        name = str(task["name"])
        events: list[AgentEvent] = []
        if not namespace:
            events += self.moved(NodeEntered(self.enquiry.run_id, fold(name, 100)))
        for event in self.reading.read(name, task["result"], task.get("error"), took):
            if isinstance(event, ToolCalled):
                self._called.append(event.tool_name)
            events.append(event)
        return events

    def moved(self, event: GraphEvent) -> list[AgentEvent]:
        """The graph's move, where the flow has an orchestration trace."""
        return [GraphMoved(event)] if self.enquiry.flow is AgentFlow.STATE_GRAPH else []

    def fall_back(self, words: str, reason: TerminationReason) -> list[AgentEvent]:
        """The answer in place of the graph's: what happened, and the calls that were made."""
        run_id = self.enquiry.run_id
        lines = [f"**{words}**\n"]
        if self._called:
            lines += ["\n", "What was looked at by then:\n", "\n"]
            lines += [f"- `{name}` [T{n}].\n" for n, name in enumerate(self._called[:_MAX_LISTED], 1)]
        if len(self._called) > _MAX_LISTED:
            lines.append(f"- And {len(self._called) - _MAX_LISTED} calls more.\n")
        return [
            *self.moved(NodeEntered(run_id, Node.FALLBACK)),
            StepTaken(Node.FALLBACK, "compose", output=words),
            *(Chunk(line) for line in lines),
            *self.moved(GraphEnded(run_id, reason)),
            Answered(degraded=True),
        ]


async def _in_own_context(begin: Callable[[], AsyncIterator[Any]]) -> AsyncGenerator[Any]:
    """The parts of an iterator that runs in a context of its own, in which nothing is traced unless it was before."""
    context = copy_context()
    silence = nullcontext() if tracing_is_enabled() else tracing_context(enabled=False)
    context.run(silence.__enter__)
    parts = context.run(begin)
    try:
        while (part := await _step(anext(parts, _END), context)) is not _END:
            yield part
    finally:
        close = getattr(parts, "aclose", None)
        if close is not None:
            await _step(close(), context)
        context.run(silence.__exit__, None, None, None)


async def _step(waiting: Awaitable[Any], context: Context) -> Any:
    """Await in this context; who cancels the one cancels the other."""

    async def wait() -> Any:
        return await waiting

    return await asyncio.create_task(wait(), context=context)
