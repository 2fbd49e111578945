"""Recording a run: started, each fact as it happens, ended; each in a short unit of work of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from attrs import define, field, frozen

from casenotes.core import rules
from casenotes.core.ending import OnRecord, Outcome, RunEnd, end_of
from casenotes.core.errors import IdempotencyConflict, InvalidInput, RunNotFound
from casenotes.core.evaluation import self_evaluation
from casenotes.core.model import (
    AgentStep,
    ChatSession,
    DiagnosisRun,
    IdempotencyKey,
    RunMetrics,
    ToolInvocation,
)
from casenotes.core.orchestration import GraphEnded, GraphEvent, OrchestrationTrace, TerminationReason
from casenotes.core.text import JsonObject
from casenotes.core.words import AgentFlow, RunStatus, StepStatus
from casenotes.ports.ambient import Clock, NewId, RunObserver
from casenotes.ports.ledger import Ledger, UnitOfWork
from casenotes.ports.through_work import starting


@frozen
class Idempotency:
    """A client's idempotency key, and the digest of the request that it stands for."""

    key: str
    body_digest: str


@frozen
class Replay:
    """A request that was answered before: the run that answered it."""

    run: DiagnosisRun


@frozen
class Recorder:
    """Starts recordings. ``owner`` names this process in the leases of its runs; ``lease`` is their period."""

    ledger: Ledger
    clock: Clock
    new_id: NewId
    observer: RunObserver
    owner: str
    lease: timedelta
    context_ttl: timedelta

    async def start(
        self, session_id: str, question: str, flow: AgentFlow, *, idempotency: Idempotency | None = None
    ) -> Recording | Replay:
        """Store a new RUNNING run, and its session if that is new.

        With a key that was used before, gives the run that it stands for; raises ``IdempotencyConflict`` when
        that run is still running or the request was another. Raises ``InvalidInput`` for an id with which no
        session may be created. Nothing is written then.
        """
        now = self.clock()
        run = DiagnosisRun.start(
            f"run-{self.new_id()}",
            session_id,
            question,
            flow,
            now,
            rules.lease_until(self.owner, now, self.lease),
        )
        session = ChatSession(
            session_id, created_at=now, last_active_at=now, expires_at=now + self.context_ttl
        )

        is_new_id = rules.is_new_session_id(session_id)

        async def store(work: UnitOfWork) -> DiagnosisRun | Replay:
            if idempotency is not None:
                key = IdempotencyKey(idempotency.key, idempotency.body_digest, session_id, run.run_id, now)
                holder = await work.keys.claim(key)
                if holder is not None:
                    return await self._replay(work, holder, idempotency)
            if not is_new_id:
                await self._require_known(work, session_id)
            return await starting(session, run)(work)

        stored: DiagnosisRun | Replay
        if idempotency is None and is_new_id:
            stored = await self.ledger.start(session, run)
        else:
            stored = await self.ledger.transact(store)
        if isinstance(stored, Replay):
            return stored
        self.observer.started(stored)
        return Recording(self, stored)

    async def _replay(self, work: UnitOfWork, holder: IdempotencyKey, asked: Idempotency) -> Replay:
        if holder.body_digest != asked.body_digest:
            raise IdempotencyConflict("this Idempotency-Key was used with another request")
        run = await work.runs.get(holder.session_id, holder.run_id)
        if run is None:
            raise RunNotFound(holder.session_id, holder.run_id)
        if run.status is RunStatus.RUNNING:
            raise IdempotencyConflict("the first request with this Idempotency-Key is still running")
        return Replay(run)

    async def _require_known(self, work: UnitOfWork, session_id: str) -> None:
        known = (
            await work.sessions.get(session_id)
            or await work.runs.latest(session_id)
            or await work.history.get(session_id)
        )
        if known is None:
            raise InvalidInput(
                "sessionId",
                f"must have 1 to {rules.MAX_SESSION_ID} characters, each a letter, mark or digit"
                " or one of . _ : @ + = ~ -, and at least one letter or digit",
            )


@define(eq=False)
class Recording:
    """One run while it is written. Steps and tool calls are numbered from 1 in the order in which they begin.

    Every method that writes returns when its row is durable. After the end, and after another process has ended
    the run, they raise ``InvalidTransition``; ``RunNotFound`` once its session was erased.
    """

    _recorder: Recorder
    run: DiagnosisRun
    _steps: int = field(default=0, init=False)
    _tools: int = field(default=0, init=False)
    _graph: OrchestrationTrace = field(init=False)
    _sealed: str | None = field(default=None, init=False)
    """The digest of the end that was decided last: nobody may have heard that it was stored."""

    def __attrs_post_init__(self) -> None:
        self._graph = OrchestrationTrace(self.run.run_id)

    @property
    def tool_count(self) -> int:
        """How many tool calls were recorded so far: the highest sequence that an answer may cite."""
        return self._tools

    @property
    def step_count(self) -> int:
        """The sequence of the step that began last; 0 before the first."""
        return self._steps

    def now(self) -> datetime:
        return self._recorder.clock()

    def reserve_step(self) -> int:
        """The sequence of a step that begins now and is recorded when it ends."""
        self._steps += 1
        return self._steps

    async def step(
        self,
        agent_name: str,
        *,
        sequence: int | None = None,
        step_type: str = "model",
        model: str | None = None,
        input: str | None = None,
        output: str | None = None,
        status: StepStatus = StepStatus.SUCCESS,
        error_message: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        duration_ms: int | None = None,
    ) -> AgentStep:
        """Record a step that was taken; ``sequence`` if it was reserved when it began."""
        step = self.run.step(
            self.reserve_step() if sequence is None else sequence,
            agent_name,
            self.now(),
            step_type=step_type,
            model=model,
            input=input,
            output=output,
            status=status,
            error_message=error_message,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            duration_ms=duration_ms,
        )
        await self._recorder.ledger.record(step)
        return step

    async def tool(
        self,
        tool_name: str,
        arguments: Mapping[str, object] | None = None,
        result: object = None,
        *,
        status: StepStatus = StepStatus.SUCCESS,
        error_message: str | None = None,
        step_sequence: int | None = None,
        duration_ms: int | None = None,
    ) -> ToolInvocation:
        """Record a tool call that was made, in the step ``step_sequence`` if in one."""
        self._tools += 1
        tool = self.run.tool_call(
            self._tools,
            tool_name,
            self.now(),
            arguments=arguments,
            result=result,
            status=status,
            error_message=error_message,
            step_sequence=step_sequence,
            duration_ms=duration_ms,
        )
        await self._recorder.ledger.record(tool)
        return tool

    def moved(self, event: GraphEvent) -> None:
        """Fold an event of this run's graph. Raises ``ForeignEvent`` for one of another run."""
        self._graph = self._graph.then(event)

    async def is_on_record(self) -> bool:
        """Whether the run is still there: its session may have been erased."""
        return await self._recorder.ledger.has_run(self.run.session_id, self.run.run_id)

    async def context_lost(self) -> None:
        """Note that the run's conversation could not be read or kept."""
        key = (self.run.session_id, self.run.run_id)
        await self._recorder.ledger.transact(lambda work: work.runs.set_context_degraded(*key))

    async def succeed(
        self, answer: str, *, degraded: bool = False, unsupported: int = 0, said: JsonObject | None = None
    ) -> DiagnosisRun:
        """End the run SUCCESS. Counts and evaluation come from its stored rows; a useful rating makes its case."""
        degraded = degraded or self._graph.degraded

        def outcome(run: DiagnosisRun, metrics: RunMetrics, tools: Sequence[ToolInvocation]) -> DiagnosisRun:
            return run.succeed(
                answer,
                self.now(),
                metrics,
                degraded=degraded,
                self_evaluation=self_evaluation(
                    run,
                    answer,
                    tools,
                    unsupported=unsupported,
                    degraded=degraded,
                    retries=self._graph.evidence_retry_count,
                    said=said,
                ),
                orchestration_trace=self._orchestration(),
            )

        return await self._end(outcome)

    async def fail(self, reason: str, why: TerminationReason = TerminationReason.ERROR) -> DiagnosisRun:
        """End the run FAILED with a reason that may be shown, and with the transitions that had happened."""
        if self._graph.transitions:
            self.moved(GraphEnded(self.run.run_id, why))

        def outcome(run: DiagnosisRun, metrics: RunMetrics, _: Sequence[ToolInvocation]) -> DiagnosisRun:
            return run.fail(reason, self.now(), metrics, orchestration_trace=self._orchestration())

        return await self._end(outcome)

    def _orchestration(self) -> JsonObject | None:
        return self._graph.as_json() if self._graph.transitions else None

    async def _end(self, outcome: Outcome) -> DiagnosisRun:
        def decide(found: OnRecord) -> RunEnd | None:
            if found.run.digest is not None and found.run.digest == self._sealed:
                return None  # it was done before, and the word of it was lost
            end = end_of(found, outcome, expires_at=self.now() + self._recorder.context_ttl)
            self._sealed = end.seal.digest
            return end

        ended = await self._recorder.ledger.end(self.run.session_id, self.run.run_id, decide)
        self.run = ended
        self._recorder.observer.ended(ended)
        return ended
