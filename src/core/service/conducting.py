"""Conducting one run: an enquiry put to the diagnostician, its events recorded and streamed, its end made certain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TypeAlias, TypeVar

from attrs import define, evolve, frozen

from casenotes.core import rules
from casenotes.core.errors import ContextUnavailable, InvalidTransition, LedgerUnavailable, RunNotFound
from casenotes.core.model import DiagnosisRun, MessagePair
from casenotes.core.orchestration import TerminationReason
from casenotes.core.service.answer import AnswerInProgress
from casenotes.core.service.recording import Recording
from casenotes.core.service.stream import Content, Execution, Note, Order
from casenotes.core.text import clean, clean_object
from casenotes.core.words import AgentFlow
from casenotes.ports.agent import (
    AgentEvent,
    Answered,
    Chunk,
    Diagnostician,
    Enquiry,
    GraphMoved,
    Progress,
    StepTaken,
    ToolCalled,
)
from casenotes.ports.ambient import RunObserver
from casenotes.ports.context import ContextStore

T = TypeVar("T")

FAULT = "an internal fault ended the run"
_END_ATTEMPTS = 7
"""With the pauses between them some 6 seconds: a database that starts anew is back by then."""
_FIRST_PAUSE = 0.1
_LEAST_TOLD = 64
"""What even an empty piece counts for: it is kept, and sent, as an event."""

Ending: TypeAlias = tuple[str, TerminationReason]
"""Why a run is made to end: words that may be shown, and the graph's reason."""

INTERRUPTED: Ending = ("the service was shut down before the run had ended", TerminationReason.INTERRUPTED)


@frozen
class Limits:
    """``run_timeout``: of one execution. ``max_running``: executions at once in this process.

    ``context_timeout``: of one call of the conversation store. ``max_facts``: steps, tool calls and moves of one run;
    ``max_told``: characters of its answer and notes. An agent that loops meets one of these before the time-out.
    """

    run_timeout: timedelta = timedelta(seconds=300)
    max_running: int = 64
    context_timeout: timedelta = timedelta(seconds=2)
    max_facts: int = 50_000
    max_told: int = 16 * 1024 * 1024


@define
class _Allowance:
    """How much more a run may record and tell."""

    facts: int
    told: int

    def take(self, event: AgentEvent) -> None:
        """Count the event. Raises ``_RanAway`` when it is one too many."""
        match event:
            case Chunk(text) | Progress(text):
                self.told -= max(len(text), _LEAST_TOLD)
            case Answered(answer):
                self.told -= len(answer or "")
            case _:
                self.facts -= 1
        if self.facts < 0:
            raise _RanAway("the run took more steps and tool calls than a run may")
        if self.told < 0:
            raise _RanAway("the run told more than a run may")


class _RanAway(Exception):
    """A diagnostician does not come to an end. The words may be shown."""


@frozen
class Conductor:
    """Carries an order out. Holds no transaction, connection or lock while the agent works."""

    diagnostician: Diagnostician
    context: ContextStore
    observer: RunObserver
    limits: Limits

    async def conduct(
        self, execution: Execution, recording: Recording, order: Order, asked: Callable[[], Ending | None]
    ) -> DiagnosisRun:
        """Run the diagnostician to its end and give the ended run, as stored.

        ``asked()`` tells why the run was asked to end, ``None`` if it was not. A cancellation ends it FAILED, for that
        reason or as interrupted. Raises ``InvalidTransition`` when another process ended the run, ``RunNotFound`` when
        its session was erased, ``LedgerUnavailable`` when the end could not be stored (the lease will then end it).
        """
        answer = AnswerInProgress()
        deadline = asyncio.timeout(self.limits.run_timeout.total_seconds())
        try:
            async with deadline:
                said = await self._diagnose(
                    execution, recording, order, answer, lambda: asked() is not None or deadline.expired()
                )
        except (RunNotFound, InvalidTransition):
            raise
        except asyncio.CancelledError:
            ending = asked() or (self._too_long() if deadline.expired() else INTERRUPTED)
        except Exception as fault:
            ending = self._judge(fault, deadline.expired(), recording)
        else:
            ended = await _surely(
                lambda: recording.succeed(
                    answer.text,
                    degraded=said.degraded,
                    unsupported=answer.unsupported,
                    said=said.self_evaluation,
                )
            )
            return await self.remember(recording, ended)
        return await _surely(lambda: recording.fail(*ending))

    def _judge(self, fault: Exception, expired: bool, recording: Recording) -> Ending:
        if expired:
            return self._too_long()
        if isinstance(fault, _RanAway):
            return str(fault), TerminationReason.ERROR
        run = recording.run
        self.observer.faulted(run.session_id, run.run_id, "executing the run", fault)
        return FAULT, TerminationReason.ERROR

    def _too_long(self) -> Ending:
        limit = self.limits.run_timeout.total_seconds()
        return f"the run took longer than {limit:g} s", TerminationReason.TIMEOUT

    async def _diagnose(
        self,
        execution: Execution,
        recording: Recording,
        order: Order,
        answer: AnswerInProgress,
        is_to_end: Callable[[], bool],
    ) -> Answered:
        enquiry = Enquiry(
            session_id=order.session_id,
            run_id=recording.run.run_id,
            question=recording.run.query,
            flow=order.flow,
            conversation=await self._recall(recording, order),
            alerts=None if order.alerts is None else tuple(clean_object(alert) for alert in order.alerts),
        )

        def tell(text: str) -> None:
            if text:
                execution.tell(Content(text))

        allowance = _Allowance(self.limits.max_facts, self.limits.max_told)
        _heed(is_to_end)
        async with _closing(self.diagnostician.diagnose(enquiry)) as events:
            async for event in events:
                _heed(is_to_end)
                allowance.take(event)
                # Else an agent that never waits keeps all others waiting, and its own time-out.
                await asyncio.sleep(0)
                match event:
                    case Answered():
                        if event.answer is not None:
                            tell(answer.take(event.answer, recording.tool_count))
                        tell(answer.finish(recording.tool_count))
                        return event
                    case Chunk(text):
                        tell(answer.take(text, recording.tool_count))
                    case Progress(text):
                        execution.tell(Note(clean(text)))
                    case _:
                        await _record(event, recording)
        raise RuntimeError("the diagnostician ended without an answer")

    async def _recall(self, recording: Recording, order: Order) -> tuple[MessagePair, ...]:
        if order.flow is AgentFlow.AI_OPS:
            return ()
        try:
            return tuple(await self.context.recall(order.session_id))
        except ContextUnavailable:
            await recording.context_lost()
            return ()

    async def remember(self, recording: Recording, ended: DiagnosisRun) -> DiagnosisRun:
        """Add an answered turn to its conversation; give the run, noting there if that could not be done in time."""
        if not rules.counts_as_turn(ended) or ended.answer is None:
            return ended
        try:
            await self.context.append(ended.session_id, MessagePair(ended.query, ended.answer))
        except (ContextUnavailable, asyncio.CancelledError):
            try:
                await _surely(recording.context_lost)
            except RunNotFound:  # erased; and the pair may have been added, though nobody heard of it
                await self._forget_if_erased(recording)
                raise
            return evolve(ended, context_degraded=True)
        await self._forget_if_erased(recording)
        return ended

    async def _forget_if_erased(self, recording: Recording) -> None:
        """Clear the conversation anew if its session was erased, by another process, between the run's end and now.

        That one has cleared it, and could not know that a pair was still to come.
        """
        try:
            if not await recording.is_on_record():
                await self.context.clear(recording.run.session_id)
        except (LedgerUnavailable, ContextUnavailable, asyncio.CancelledError):
            return  # then the pair goes with its time to live


def _heed(is_to_end: Callable[[], bool]) -> None:
    """Raise the cancellation of a run that is to end, if what it called has swallowed it.

    Up to Python 3.11 ``asyncio.wait_for`` does so when its result comes in the same moment, and agents and drivers use
    it: the run would go on, and whoever ends it would wait for it.
    """
    if is_to_end():
        raise asyncio.CancelledError


async def _record(event: AgentEvent, recording: Recording) -> None:
    match event:
        case StepTaken():
            await recording.step(
                event.agent_name,
                step_type=event.step_type,
                model=event.model,
                input=event.input,
                output=event.output,
                status=event.status,
                error_message=event.error_message,
                input_tokens=event.input_tokens,
                output_tokens=event.output_tokens,
                duration_ms=event.duration_ms,
            )
        case ToolCalled():
            await recording.tool(
                event.tool_name,
                event.arguments,
                event.result,
                status=event.status,
                error_message=event.error_message,
                step_sequence=recording.step_count or None,
                duration_ms=event.duration_ms,
            )
        case GraphMoved(moved):
            recording.moved(moved)


async def _surely(act: Callable[[], Awaitable[T]]) -> T:
    """Do it to its end, whoever cancels, and again while the ledger is away; at most for some seconds."""
    task = asyncio.ensure_future(persistently(act))
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            continue
        except Exception:
            break
    return task.result()


async def persistently(act: Callable[[], Awaitable[T]]) -> T:
    """Do it, and again while the ledger is away; at most for some seconds."""
    pause = _FIRST_PAUSE
    for _ in range(_END_ATTEMPTS - 1):
        try:
            return await act()
        except LedgerUnavailable:
            await asyncio.sleep(pause)
            pause *= 2
    return await act()


@asynccontextmanager
async def _closing(events: AsyncIterator[AgentEvent]) -> AsyncIterator[AsyncIterator[AgentEvent]]:
    try:
        yield events
    finally:
        close = getattr(events, "aclose", None)  # a generator has it; an iterator of another make need not
        if close is not None:
            await close()
