"""A run that is recorded by the code that executes it: what ``async with notes.run(...) as run`` gives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

from attrs import Attribute, define, field, setters

from casenotes.core.errors import InvalidInput, InvalidTransition
from casenotes.core.model import DiagnosisRun, ToolInvocation
from casenotes.core.orchestration import TerminationReason
from casenotes.core.service.answer import AnswerInProgress
from casenotes.core.service.conducting import persistently
from casenotes.core.service.recording import Recording
from casenotes.core.text import clean_json, json_text
from casenotes.core.words import RunStatus, StepStatus
from casenotes.entrypoints.graph_moves import GraphMoves
from casenotes.entrypoints.outlasting import reason_of, to_its_end
from casenotes.ports.ambient import RunObserver

Status: TypeAlias = StepStatus | Literal["SUCCESS", "FAILED"]
Remember: TypeAlias = Callable[[Recording, DiagnosisRun], Awaitable[DiagnosisRun]]
"""Adds an answered run to its conversation."""

NO_ANSWER = "the run's block ended without an answer"
_MOST = 2**63 - 1


def _count(name: str, value: float | None) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        raise InvalidInput(name, "must be a number, 0 or more")
    return round(value)


def _is_count(_: object, attribute: Attribute[int | None], value: int | None) -> None:
    if _count(attribute.name, value) != value:
        raise InvalidInput(attribute.name, "must be a whole number")


def _are_words(_: object, attribute: Attribute[str | None], value: str | None) -> None:
    if value is not None and not isinstance(value, str):
        raise InvalidInput(attribute.name, "must be a string")


@define(eq=False)
class Step:
    """A step under way. Set what it read and said; it is recorded, with its duration, when its block ends.

    ``input`` and ``output`` are text; any other value is kept as its JSON text. The step is FAILED when
    ``error_message`` is set or an exception leaves the block. Setting a count that is none raises ``InvalidInput``.
    """

    sequence: int = field(on_setattr=setters.frozen)
    input: object = None
    output: object = None
    input_tokens: int | None = field(default=None, validator=_is_count)
    output_tokens: int | None = field(default=None, validator=_is_count)
    error_message: str | None = field(default=None, validator=_are_words)


_open_steps: ContextVar[tuple[tuple[Recording, Step], ...]] = ContextVar("casenotes_open_steps", default=())
"""The steps that enclose the code that runs now, innermost last. A task begins with those it was started in."""


@define(eq=False)
class Run:
    """A run under way. ``session_id`` and ``run_id`` name it, during its block and after.

    Every recording method returns when its row is durable. After the run's end they raise ``InvalidTransition``,
    ``RunNotFound`` once its session was erased, ``LedgerUnavailable`` while the database is away. Any number of
    tasks may record at once.
    """

    _recording: Recording
    _observer: RunObserver
    graph: GraphMoves = field(init=False)
    """Where the moves of a STATE_GRAPH run are recorded."""
    _answer: str | None = field(default=None, init=False)
    _degraded: bool = field(default=False, init=False)
    _under_way: set[int] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self.graph = GraphMoves(self._recording)

    @property
    def session_id(self) -> str:
        return self._recording.run.session_id

    @property
    def run_id(self) -> str:
        return self._recording.run.run_id

    @asynccontextmanager
    async def step(
        self, name: str, *, step_type: str = "model", model: str | None = None, input: object = None
    ) -> AsyncIterator[Step]:
        """A step of the run's agent. Tool calls made inside are recorded as its own.

        An exception that leaves the block goes on to the caller, after the step was recorded as FAILED.
        """
        self._require_running()
        step = Step(self._recording.reserve_step(), input=input)
        began = time.monotonic()

        async def record() -> None:
            await self._recording.step(
                name,
                sequence=step.sequence,
                step_type=step_type,
                model=model,
                input=_text(step.input),
                output=_text(step.output),
                status=StepStatus.SUCCESS if step.error_message is None else StepStatus.FAILED,
                error_message=step.error_message,
                input_tokens=step.input_tokens,
                output_tokens=step.output_tokens,
                duration_ms=_count("duration_ms", (time.monotonic() - began) * 1000),
            )

        outside = _open_steps.get()
        _open_steps.set((*outside, (self._recording, step)))
        self._under_way.add(step.sequence)
        try:
            yield step
        except BaseException as fault:
            if step.error_message is None:
                step.error_message = reason_of("the step", fault)
            await self.even_so(fault, record, "recording a failed step")
            raise
        else:
            await to_its_end(record)
        finally:
            self._under_way.discard(step.sequence)
            _open_steps.set(outside)

    async def tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        result: object = None,
        status: Status | None = None,
        duration_ms: float | None = None,
        error: str | None = None,
    ) -> ToolInvocation:
        """Record a tool call that was made, in the step that encloses it. An answer cites it as ``[T<sequence>]``.

        Without a ``status`` it is FAILED when there is an ``error``. Raises ``InvalidInput`` for another status or
        a duration that is none.
        """
        if status is None:
            status = StepStatus.SUCCESS if error is None else StepStatus.FAILED
        if status not in tuple(StepStatus):
            raise InvalidInput("status", "must be 'SUCCESS' or 'FAILED'")
        return await self._recording.tool(
            name,
            arguments,
            result,
            status=StepStatus(status),
            error_message=error,
            step_sequence=self._enclosing_step(),
            duration_ms=_count("duration_ms", duration_ms),
        )

    def answer(self, text: str, degraded: bool = False) -> None:
        """Give the answer; it is stored when the block ends. Given again, the last one counts.

        ``degraded``: it was made without something it should have had. Secrets in it are redacted, and a citation
        of a tool call that was not made becomes ``[unsupported]``. Raises ``InvalidInput`` unless it is a string.
        """
        if not isinstance(text, str):
            raise InvalidInput("answer", "must be a string")
        self._require_running()
        self._answer, self._degraded = text, degraded

    async def end(self, remember: Remember) -> None:
        """End the run as its block ended, by itself: SUCCESS with its answer, or FAILED for want of one."""
        self._require_running()
        if self._answer is None:
            await persistently(lambda: self._recording.fail(NO_ANSWER))
            return
        answer, tools = AnswerInProgress(), self._recording.tool_count
        answer.take(self._answer, tools)
        answer.finish(tools)
        self.graph.settle()
        ended = await persistently(
            lambda: self._recording.succeed(
                answer.text, degraded=self._degraded, unsupported=answer.unsupported
            )
        )
        await remember(self._recording, ended)

    async def fail(self, reason: str, why: TerminationReason) -> None:
        """End the run FAILED, unless it has ended."""
        if self._recording.run.status is RunStatus.RUNNING:
            await persistently(lambda: self._recording.fail(reason, why))

    async def even_so(
        self, fault: BaseException, act: Callable[[], Coroutine[Any, Any, None]], what: str
    ) -> None:
        """Do it to its end while a fault is on its way: what goes wrong here is noted, and never hides the fault."""
        try:
            await to_its_end(act)
        except asyncio.CancelledError:
            if isinstance(fault, Exception):
                raise
        except Exception as other:
            self._observer.faulted(self.session_id, self.run_id, what, other)

    def _enclosing_step(self) -> int | None:
        for recording, step in reversed(_open_steps.get()):
            # A task may outlive the step it was started in.
            if recording is self._recording and step.sequence in self._under_way:
                return step.sequence
        return None

    def _require_running(self) -> None:
        if self._recording.run.status is not RunStatus.RUNNING:
            raise InvalidTransition(self.run_id)


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    cleaned = clean_json(value)
    return cleaned if isinstance(cleaned, str) else json_text(cleaned)
