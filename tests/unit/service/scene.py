"""A service over memory adapters with a diagnostician and a clock that the test commands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import count

from attrs import define, field

from casenotes.adapters.context import MemoryContextStore
from casenotes.adapters.memory import MemoryLedger
from casenotes.core.model import DiagnosisRun
from casenotes.core.orchestration import Node, NodeEntered
from casenotes.core.service.conducting import Limits
from casenotes.core.service.service import Service
from casenotes.core.service.stream import Content, Order, Outcome
from casenotes.core.words import AgentFlow
from casenotes.ports.agent import AgentEvent, Answered, Chunk, Enquiry, GraphMoved, StepTaken, ToolCalled
from casenotes.ports.context import ContextStore
from casenotes.ports.ledger import Ledger

T0 = datetime(2026, 3, 1, tzinfo=UTC)
LEASE = timedelta(seconds=30)


@define
class ManualClock:
    """Stands still until it is moved."""

    now: datetime = T0

    def __call__(self) -> datetime:
        return self.now

    def move(self, by: timedelta) -> None:
        self.now += by


@define
class Scripted:
    """Plays a script for every enquiry, and keeps the enquiries."""

    script: Callable[[Enquiry], AsyncIterator[AgentEvent]]
    enquiries: list[Enquiry] = field(factory=list)

    def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        self.enquiries.append(enquiry)
        return self.script(enquiry)


async def plain(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    """One step, one tool call, an answer that cites it."""
    yield StepTaken("planner", output="look")
    yield ToolCalled("logs.search", {"q": enquiry.question}, "3 hits")
    yield Chunk(f"About {enquiry.question}: [T1]\n")
    yield Answered()


async def hang(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    """One step, one move, and then nothing more."""
    yield StepTaken("planner")
    yield GraphMoved(NodeEntered(enquiry.run_id, Node.PLANNER))
    await asyncio.Event().wait()


@define
class Observed:
    """Remembers what the service told its observer."""

    begun: list[DiagnosisRun] = field(factory=list)
    over: list[DiagnosisRun] = field(factory=list)
    faults: list[str] = field(factory=list)

    def started(self, run: DiagnosisRun) -> None:
        self.begun.append(run)

    def ended(self, run: DiagnosisRun) -> None:
        self.over.append(run)

    def faulted(self, session_id: str, run_id: str | None, what: str, fault: BaseException) -> None:
        self.faults.append(what)


@define
class Scene:
    """All the parts, to look at."""

    service: Service
    agent: Scripted
    clock: ManualClock
    observed: Observed
    ledger: Ledger
    context: ContextStore

    async def ask(
        self, question: str = "Why?", session_id: str = "s-1", flow: AgentFlow = AgentFlow.CHAT
    ) -> DiagnosisRun:
        execution = await self.service.executions.submit(Order(session_id, question, flow))
        return (await execution.outcome()).run


def scene(
    script: Callable[[Enquiry], AsyncIterator[AgentEvent]] = plain,
    *,
    limits: Limits | None = None,
    ledger: Ledger | None = None,
    context: ContextStore | None = None,
    owner: str = "one",
) -> Scene:
    clock = ManualClock()
    agent, observed = Scripted(script), Observed()
    ledger = ledger or MemoryLedger()
    context = context or MemoryContextStore(window=6, ttl=86400, clock=clock)
    numbers = count(1)
    service = Service.over(
        ledger=ledger,
        context=context,
        diagnostician=agent,
        clock=clock,
        new_id=lambda: f"{owner}-{next(numbers)}",
        observer=observed,
        limits=limits or Limits(),
        lease=LEASE,
        context_ttl=timedelta(days=1),
    )
    return Scene(service, agent, clock, observed, ledger, context)


def told(events: list[object]) -> str:
    """The contents of a stream, joined."""
    return "".join(event.text for event in events if isinstance(event, Content))


async def followed(scene: Scene, order: Order) -> list[object]:
    """Everything an execution tells, to its outcome."""
    execution = await scene.service.executions.submit(order)
    events: list[object] = [event async for event in execution.follow()]
    assert isinstance(events[-1], Outcome)
    return events


def play(act: Callable[[], Awaitable[None]]) -> None:
    """Run a test's coroutine, and see that it leaves no task behind."""

    async def alone() -> None:
        await act()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left

    asyncio.run(alone())
