"""A service in a process of its own, whose runs wait until it gets SIGUSR1: ``python -m support.waiting_service``."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator

from support.scripted import Scripted

from casenotes.core.orchestration import GraphEnded, NodeEntered, TerminationReason
from casenotes.core.words import AgentFlow
from casenotes.entrypoints.http.server import serve
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import AgentEvent, Answered, Enquiry, GraphMoved, Progress, StepTaken, ToolCalled


async def main() -> None:
    released = asyncio.Event()

    async def waiting(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        """Takes a step, calls a tool, says that it waits, and does."""
        graph = enquiry.flow is AgentFlow.STATE_GRAPH
        if graph:
            yield GraphMoved(NodeEntered(enquiry.run_id, "planner"))
        yield StepTaken("planner", input=enquiry.question)
        yield ToolCalled("logs.search", {"q": enquiry.question}, "one line")
        yield Progress("waiting")
        await released.wait()
        if graph:
            yield GraphMoved(NodeEntered(enquiry.run_id, "composer"))
            yield GraphMoved(GraphEnded(enquiry.run_id, TerminationReason.COMPOSED))
        yield Answered("found [T1]\n")

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, released.set)
    await serve(Settings.from_environ(), port=0, diagnostician=Scripted(waiting))


if __name__ == "__main__":
    asyncio.run(main())
