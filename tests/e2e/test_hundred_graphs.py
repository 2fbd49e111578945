"""A hundred graphs at once: what is on record of each is its own, and nothing of another's."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import pytest
from on_langgraph.graphs import agent_with_tools
from support.service import Backend, Running

from casenotes.adapters.agents import EmbeddedDiagnostician
from casenotes.adapters.agents.langgraph import LangGraphDiagnostician
from casenotes.core.text import JsonObject
from casenotes.ports.agent import About, Diagnostician, Lookup, Observation, ObservationStatus

RUNS = 100


class Farm:
    """A hundred services. Some logs hold an error, some need a second look elsewhere, some are not there."""

    tools = frozenset({"read_log"})

    async def offer(self) -> Sequence[Lookup]:
        return []

    async def offer_for(self, about: About) -> Sequence[Lookup]:
        named = re.findall(r"svc\d+", about.question)
        return [Lookup("read_log", {"service": f"{name}-{pod}"}) for name in named for pod in "abc"]

    async def look(self, lookup: Lookup) -> Observation:
        await asyncio.sleep(0)
        service = str(lookup.arguments["service"])
        number = int(re.sub(r"\D", "", service))
        if number % 3 == 2:
            return Observation(ObservationStatus.NO_DATA)
        level = "ERROR" if number % 3 == 0 else "INFO"
        return Observation(ObservationStatus.SUCCESS, f"{level} the disk of {service} is full")


def graphs() -> dict[str, tuple[Diagnostician, str]]:
    """The diagnosticians, each with its tool."""
    return {
        "embedded": (EmbeddedDiagnostician([Farm()]), "read_log"),
        "langgraph": (LangGraphDiagnostician(agent_with_tools()), "search_logs"),
    }


def is_whole(orchestration: JsonObject) -> bool:
    """Whether each move leaves the node that the one before it entered."""
    transitions: Any = orchestration["transitions"]
    sources = [move["from"] for move in transitions]
    targets = [move["to"] for move in transitions]
    return sources == ["START", *targets[:-1]] and targets[-1] == orchestration["finalNode"]


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("name", ["embedded", "langgraph"])
def test_each_of_a_hundred_runs_has_its_own_moves_and_tools(
    request: pytest.FixtureRequest, store: str, name: str
) -> None:
    diagnostician, tool = graphs()[name]
    backend: Backend = request.getfixturevalue(store)

    async def one(here: Running, number: int) -> None:
        made = await here.client.ask(f"Why does svc{number} fail?", f"s-{number % 7}", flow="graph")
        trace = (await here.client.trace(made["sessionId"], made["runId"])).data
        orchestration = trace["run"]["orchestrationTrace"]
        assert is_whole(orchestration)
        entered = [move["to"] for move in orchestration["transitions"]]
        agents = [step["agentName"] for step in trace["agentSteps"]]
        assert [agent for at, agent in enumerate(agents) if agent != (agents[at - 1] if at else None)] == [
            *entered
        ], "the trace names the nodes of this run's own steps, in their order"
        calls = trace["toolInvocations"]
        assert calls and {call["toolName"] for call in calls} == {tool}
        own = ([f"svc{number}"], [f"svc{number}"] * 2)  # in the arguments and, where there is one, the result
        assert [call["sequence"] for call in calls] == list(range(1, len(calls) + 1))
        assert all(re.findall(r"svc\d+", str(call)) in own for call in calls)

    async def scenario(here: Running) -> None:
        await asyncio.gather(*(one(here, number) for number in range(RUNS)))

    backend.run(scenario, diagnostician, max_running=RUNS)
