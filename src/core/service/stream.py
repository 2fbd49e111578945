"""An order, and the execution that carries it out, as those who wait for it see it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import TypeAlias

from attrs import define, field, frozen

from casenotes.core.model import DiagnosisRun
from casenotes.core.service.recording import Idempotency
from casenotes.core.words import AgentFlow, RunStatus


@frozen
class Order:
    """What somebody wants executed. ``alerts``: those given with the request, AI_OPS only."""

    session_id: str
    question: str
    flow: AgentFlow
    alerts: tuple[Mapping[str, object], ...] | None = None
    idempotency: Idempotency | None = None


@frozen
class Content:
    """A piece of the answer; all pieces, joined, are the stored answer."""

    text: str


@frozen
class Note:
    """A word on what is being done."""

    text: str


@frozen
class Outcome:
    """How an execution ended: the run as it is stored, or, of an erased session, as it was."""

    run: DiagnosisRun


StreamEvent: TypeAlias = Content | Note | Outcome


@define(eq=False)
class Execution:
    """A run under way, or one that is told again. Any number may follow it, from its beginning, at any time."""

    run: DiagnosisRun
    _events: list[StreamEvent] = field(factory=list)
    _changed: asyncio.Event = field(factory=asyncio.Event)

    @classmethod
    def retold(cls, run: DiagnosisRun) -> Execution:
        """The execution of a run that has ended, as it would be followed again: its answer, and its end."""
        told = run.status is RunStatus.SUCCESS and run.answer
        return cls(run, [*([Content(told)] if told else []), Outcome(run)])

    def tell(self, event: StreamEvent) -> None:
        """Add an event, and wake those who follow. Never waits for them."""
        self._events.append(event)
        woken, self._changed = self._changed, asyncio.Event()
        woken.set()

    async def follow(self) -> AsyncGenerator[StreamEvent, None]:
        """All events from the first on; the last is the ``Outcome``, told when the run's end is durable."""
        position = 0
        while True:
            changed = self._changed
            while position < len(self._events):
                event = self._events[position]
                position += 1
                yield event
                if isinstance(event, Outcome):
                    return
            await changed.wait()

    async def outcome(self) -> Outcome:
        """Wait for the end."""
        while True:
            last = self._events[-1] if self._events else None
            if isinstance(last, Outcome):
                return last
            await self._changed.wait()
