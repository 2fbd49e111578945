"""The executions of this process: started, kept until they have ended, ended when the process must go.

An execution is a task of its own: whoever asked may go away, and the run is finished and recorded all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from attrs import define, evolve, field

from casenotes.core.errors import (
    InvalidTransition,
    LedgerUnavailable,
    RunNotFound,
    ShuttingDown,
    TooManyRunning,
)
from casenotes.core.model import DiagnosisRun, RunKey
from casenotes.core.orchestration import TerminationReason
from casenotes.core.service.conducting import FAULT, INTERRUPTED, Conductor, Ending
from casenotes.core.service.recording import Recorder, Recording, Replay
from casenotes.core.service.stream import Execution, Order, Outcome
from casenotes.core.words import RunStatus

ERASED: Ending = ("the session was erased", TerminationReason.INTERRUPTED)
LEASE_LOST: Ending = ("the run's lease was lost to another process", TerminationReason.INTERRUPTED)

_ASKED_AGAIN_SECONDS = 5.0
"""How long a run that is to end may take for it before it is told again: its agent may have swallowed the word."""


@define(eq=False)
class Executions:
    """Starts executions and keeps them until they have ended."""

    recorder: Recorder
    conductor: Conductor
    _running: dict[str, tuple[Recording, asyncio.Task[None]]] = field(factory=dict, init=False)
    _begun: dict[str, asyncio.Event] = field(factory=dict, init=False)
    """Set once the run's task is at work: one that is cancelled before that would leave without a word."""
    _endings: dict[str, Ending] = field(factory=dict, init=False)
    _starting: set[asyncio.Task[Any]] = field(factory=set, init=False)
    _closed: bool = field(default=False, init=False)

    def running(self) -> frozenset[RunKey]:
        """The runs that are executed here now. One whose end is stored has no lease any more that it could lose."""
        return frozenset(
            (recording.run.session_id, run_id)
            for run_id, (recording, _) in self._running.items()
            if recording.run.status is RunStatus.RUNNING
        )

    async def submit(self, order: Order) -> Execution:
        """Store the order's run and begin to execute it; returns when the run is durable.

        Raises ``TooManyRunning``, ``ShuttingDown``, and what ``Recorder.start`` raises; no run exists then.
        """
        if self._closed:
            raise ShuttingDown("the service is shutting down")
        if len(self._running) + len(self._starting) >= self.conductor.limits.max_running:
            raise TooManyRunning("too many executions are running")
        # A task, shielded: a caller that goes away while its run is stored leaves no run that nobody executes.
        task = asyncio.create_task(self._start(order))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
        return await asyncio.shield(task)

    async def _start(self, order: Order) -> Execution:
        recording = await self.recorder.start(
            order.session_id, order.question, order.flow, idempotency=order.idempotency
        )
        if isinstance(recording, Replay):
            return Execution.retold(recording.run)
        execution = Execution(recording.run)
        self._begun[recording.run.run_id] = asyncio.Event()
        task = asyncio.create_task(self._execute(execution, recording, order), name=recording.run.run_id)
        self._running[recording.run.run_id] = (recording, task)
        if (starting := asyncio.current_task()) is not None:
            self._starting.discard(starting)  # at once: else it would count twice for a moment
        return execution

    async def _execute(self, execution: Execution, recording: Recording, order: Order) -> None:
        run = recording.run
        self._begun[run.run_id].set()
        try:
            ended = await self._ended(execution, recording, order)
        except RunNotFound:
            ended = _failed(run, ERASED)
        except BaseException as fault:
            self.recorder.observer.faulted(run.session_id, run.run_id, "ending the run", fault)
            ended = _failed(run, (FAULT, TerminationReason.ERROR))
        finally:
            self._running.pop(run.run_id, None)
            self._begun.pop(run.run_id, None)
            self._endings.pop(run.run_id, None)
        execution.tell(Outcome(ended))

    async def _ended(self, execution: Execution, recording: Recording, order: Order) -> DiagnosisRun:
        run_id = recording.run.run_id
        try:
            return await self.conductor.conduct(
                execution, recording, order, lambda: self._endings.get(run_id)
            )
        except InvalidTransition:
            return await self._as_stored(recording, self._endings.get(run_id, LEASE_LOST))

    async def _as_stored(self, recording: Recording, ending: Ending) -> DiagnosisRun:
        """The run, which had ended already when it was to be ended.

        Where a commit was done and its acknowledgement lost, that was this very execution: what it stored is told.
        """
        run = recording.run
        try:
            async with self.recorder.ledger.view() as view:
                stored = await view.runs.get(run.session_id, run.run_id)
        except (LedgerUnavailable, asyncio.CancelledError):
            stored = None
        if stored is not None and stored.status is RunStatus.SUCCESS:
            return await self.conductor.remember(recording, stored)
        return _failed(run, ending)

    async def interrupt(self, run_ids: Collection[str], ending: Ending) -> None:
        """End those of these runs that are executed here, for this reason; returns when they have ended."""
        chosen = self._running.keys() & set(run_ids)
        pending = set[asyncio.Task[None]]()
        for run_id, task, begun in [(k, self._running[k][1], self._begun[k]) for k in chosen]:
            await begun.wait()
            if not task.done():
                self._endings.setdefault(run_id, ending)
                task.cancel()
                pending.add(task)
        while pending:
            _, pending = await asyncio.wait(pending, timeout=_ASKED_AGAIN_SECONDS)
            for task in pending:
                task.cancel()

    async def lost(self, runs: Collection[RunKey]) -> None:
        """End runs whose lease another process took."""
        await self.interrupt([run_id for _, run_id in runs], LEASE_LOST)

    async def erased(self, session_id: str) -> None:
        """End the executions of a session that is being erased."""
        of_session = [
            k for k, (recording, _) in self._running.items() if recording.run.session_id == session_id
        ]
        await self.interrupt(of_session, ERASED)

    async def close(self, grace: timedelta) -> None:
        """Take no more orders, let what runs finish for ``grace``, then end it FAILED as interrupted."""
        self._closed = True
        if self._starting:
            await asyncio.wait(set(self._starting))
        tasks = [task for _, task in self._running.values()]
        if tasks and grace:
            await asyncio.wait(tasks, timeout=grace.total_seconds())
        await self.interrupt(list(self._running), INTERRUPTED)


def _failed(run: DiagnosisRun, ending: Ending) -> DiagnosisRun:
    return evolve(run, status=RunStatus.FAILED, error_message=ending[0])
