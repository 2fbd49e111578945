"""The flows by their names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from casenotes.adapters.agents.aiops import ai_ops
from casenotes.adapters.agents.chat import chat
from casenotes.adapters.agents.investigating import Investigation
from casenotes.adapters.agents.reasoning import RULES, Reasoner
from casenotes.adapters.agents.state_graph import state_graph
from casenotes.core.words import AgentFlow
from casenotes.ports.agent import AgentEvent

_FLOWS: dict[AgentFlow, Callable[[Investigation, Reasoner], AsyncIterator[AgentEvent]]] = {
    AgentFlow.CHAT: chat,
    AgentFlow.STATE_GRAPH: state_graph,
    AgentFlow.AI_OPS: ai_ops,
}


def played(investigation: Investigation, reasoner: Reasoner = RULES) -> AsyncIterator[AgentEvent]:
    """The events of the flow asked for, ``Answered`` last. One without graph and report is answered as CHAT."""
    return _FLOWS.get(investigation.enquiry.flow, chat)(investigation, reasoner)
