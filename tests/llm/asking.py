"""Asking a service whose diagnostician has a model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from attrs import frozen
from support.model_server import KEY, MODEL, ModelServer, Play, choosing, serving_model, telling
from support.service import Backend, Running
from unit.diagnosis.asking import Recorded, alert, firing

from casenotes.adapters.agents.llm import ChatModel, LlmDiagnostician
from casenotes.core.words import AgentFlow

CAUSE = "no space left on device"
FLOWS = [AgentFlow.CHAT, AgentFlow.STATE_GRAPH, AgentFlow.AI_OPS]
GOOD_PLAN = choosing(1, 2)
GOOD_ANSWER = telling("The disk of web-0 is full [T2].\n- It says so [T2].\n\nNext: make room [T2].")


def source() -> Recorded:
    """A web server whose disk is full, and a database that is well."""
    return Recorded(
        firing(alert("WebDown", service="web", namespace="shop")),
        ("kubectl_logs", {"pod": "web-0"}, f"2026-03-11T09:43:00Z ERROR {CAUSE}"),
        ("kubectl_logs", {"pod": "db-0"}, "2026-03-11T09:43:00Z INFO ready"),
        ("kubectl_describe", {"pod": "web-0"}, "Name: web-0\nStatus: Running"),
    )


async def no_pause(_seconds: float) -> None:
    """Stands for sleeping between attempts."""


@frozen
class Asked:
    """A run that was asked for, as its trace shows it."""

    trace: dict[str, Any]
    answer: str
    body: str

    @property
    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = self.trace["run"]
        return found

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps that a model took, or failed to take."""
        return [step for step in self.trace["agentSteps"] if step["model"] is not None]

    @property
    def orchestration(self) -> dict[str, Any]:
        found = self.run["orchestrationTrace"]
        assert isinstance(found, dict)
        return found

    @property
    def path(self) -> list[str]:
        return [move["to"] for move in self.orchestration["transitions"]]

    @property
    def last_error(self) -> str:
        words = self.steps[-1]["errorMessage"]
        assert isinstance(words, str)
        return words


@frozen
class Service:
    """A running service and the model's server behind it."""

    here: Running
    model: ModelServer

    async def ask(self, flow: AgentFlow, question: str = "Why is web down?") -> Asked:
        """Ask in this flow, and read the trace of the run."""
        if flow is AgentFlow.AI_OPS:
            events = await self.here.client.stream("/api/ai_ops", {})
            ids = events[0].payload
            content = "".join(event.payload for event in events if event.type == "content")
            assert events[-1].type == "done"
        else:
            named = "graph" if flow is AgentFlow.STATE_GRAPH else "chat"
            reply = await self.here.client.post("/api/chat", {"question": question, "flow": named})
            ids, content = reply.data, reply.data["answer"]
        found = await self.here.client.trace(ids["sessionId"], ids["runId"])
        return Asked(found.data, content, found.body.decode())


@asynccontextmanager
async def service(
    backend: Backend,
    plan: Play = GOOD_PLAN,
    answer: Play = GOOD_ANSWER,
    *,
    evidence: Recorded | None = None,
    patience: float = 10.0,
    run_timeout: float = 60.0,
) -> AsyncIterator[Service]:
    """The service over this evidence, with a model that plays these."""
    async with serving_model(plan, answer) as server:
        model = ChatModel(server.base_url, MODEL, patience, KEY, sleep=no_pause)
        diagnostician = LlmDiagnostician([evidence or source()], model, run_timeout)
        try:
            async with backend.serving(diagnostician) as here:
                yield Service(here, server)
        finally:
            await diagnostician.close()
