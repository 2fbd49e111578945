"""What two replicas do, one thing after another, beside the model."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from fuzz.fleet import Broken, Replica
from fuzz.model import Run
from fuzz.watched import SESSIONS, Watched
from hypothesis import strategies as st
from hypothesis.stateful import rule

from casenotes.core.errors import IdempotencyConflict, RunNotFound, SessionNotFound
from casenotes.core.service.recording import Idempotency
from casenotes.core.service.stream import Execution, Order
from casenotes.core.words import AgentFlow
from casenotes.ports.agent import AgentEvent, Answered, Chunk, StepTaken, ToolCalled

sessions = st.sampled_from(SESSIONS)
replicas = st.integers(0, 1)
picks = st.integers(0, 5)
ratings = st.sampled_from(["useful", "not_useful"])
flows = st.sampled_from([AgentFlow.CHAT, AgentFlow.CHAT, AgentFlow.AI_OPS])
comments = st.sampled_from([None, "thanks", "no"])


class Machine(Watched):
    """The rules for one thing at a time."""

    # Runs.

    async def begin(
        self, by: Replica, session_id: str, question: str, flow: AgentFlow, key: str | None = None
    ) -> Execution:
        asked = None if key is None else Idempotency(key, f"{session_id} {flow}")
        execution = await by.service.executions.submit(Order(session_id, question, flow, idempotency=asked))
        by.executions[execution.run.run_id] = execution
        await by.settled(execution.run.run_id)
        return execution

    def begun(self, by: Replica, execution: Execution) -> Run:
        seen = execution.run
        run = self.record.start(
            seen.run_id, seen.session_id, seen.query, str(seen.agent_flow), by.owner, self.now
        )
        self.held[run.run_id] = by
        self.last = run.session_id
        return run

    @rule(which=replicas, session_id=sessions, flow=flows)
    def start(self, which: int, session_id: str, flow: AgentFlow) -> None:
        by = self.replica(which)
        known = self.record.sessions.get(session_id)
        told = [] if known is None or flow is AgentFlow.AI_OPS else list(known.conversation)
        run = self.begun(by, self.do(self.begin(by, session_id, self.word("question"), flow)))
        conversation = by.puppets.led[run.run_id].conversation
        assert [(pair.question, pair.answer) for pair in conversation] == told

    @rule(which=replicas, session_id=sessions, flow=flows, key=st.sampled_from(["k-1", "k-2"]))
    def start_with_a_key(self, which: int, session_id: str, flow: AgentFlow, key: str) -> None:
        by = self.replica(which)
        digest, of = self.record.keys.get(key, (None, ""))
        try:
            execution = self.do(self.begin(by, session_id, self.word("question"), flow, key))
        except IdempotencyConflict:
            self.sound = True
            assert digest is not None
            assert digest != f"{session_id} {flow}" or self.record.runs[of].running
            return
        if digest is None:
            self.record.keys[key] = (f"{session_id} {flow}", self.begun(by, execution).run_id)
        else:
            assert digest == f"{session_id} {flow}" and execution.run.run_id == of
            assert execution.run.answer == self.record.runs[of].answer

    def lead(self, pick: int, *events: AgentEvent | Broken) -> Run | None:
        """Let a run go on; gives it if it was running: what another replica ended or erased only stops."""
        run_id, by = self.a_held(pick)
        self.do(by.lead(run_id, *events[:-1]))
        run = self.record.runs.get(run_id)
        if by.executes(run_id):
            self.do(by.lead(run_id, events[-1]))
        if run is None or not run.running:
            assert not by.executes(run_id)
            self.let_go()
            return None
        self.last = run.session_id
        self.let_go()
        return run

    @rule(pick=picks)
    def step(self, pick: int) -> None:
        if not self.held:
            return
        output = self.word("step")
        if run := self.lead(pick, StepTaken("planner", output=output)):
            run.steps.append(output)

    @rule(pick=picks)
    def tool(self, pick: int) -> None:
        if not self.held:
            return
        result = self.word("result")
        if run := self.lead(pick, ToolCalled("logs.search", {"q": "x"}, result)):
            run.tools.append((result, len(run.steps) or None))

    @rule(pick=picks)
    def succeed(self, pick: int) -> None:
        if not self.held:
            return
        answer = self.word("answer")
        if run := self.lead(pick, Answered(answer)):
            self.record.succeed(run, answer, self.now)
            self.learn_cases()

    @rule(which=replicas, session_id=sessions, flow=flows, then=st.none() | st.tuples(ratings, comments))
    def ask(self, which: int, session_id: str, flow: AgentFlow, then: tuple[str, str | None] | None) -> None:
        """A whole run, and perhaps a word on it."""
        self.start(which, session_id, flow)
        newest = len(self.held) - 1
        self.step(newest)
        self.tool(newest)
        self.succeed(newest)
        if then is not None:
            self.feedback(1 - which, 0, True, *then)

    @rule(pick=picks)
    def fail(self, pick: int) -> None:
        if not self.held:
            return
        if run := self.lead(pick, Chunk("half an answer"), Broken()):
            self.record.fail(run, self.now)

    # Feedback.

    async def rate(
        self, by: Replica, session_id: str, run_id: str | None, rating: str, comment: str | None
    ) -> Any:
        return await by.service.feedback.give(session_id, rating, run_id=run_id, comment=comment)

    def check_receipt(self, receipt: Any, run: Run, rating: str, fell_back: bool) -> None:
        assert (receipt.session_id, receipt.run_id) == (run.session_id, run.run_id)
        assert (receipt.feedback, receipt.fallback_to_latest_run) == (rating, fell_back)
        assert (receipt.case_id is not None) == (rating == "useful" and run.answer is not None)

    @rule(which=replicas, pick=picks, named=st.booleans(), rating=ratings, comment=comments)
    def feedback(self, which: int, pick: int, named: bool, rating: str, comment: str | None) -> None:
        if not self.record.runs:
            return
        run = self.a_run(pick)
        target = run if named else self.record.latest(run.session_id)
        assert target is not None
        receipt = self.do(
            self.rate(self.replica(which), run.session_id, run.run_id if named else None, rating, comment)
        )
        self.check_receipt(receipt, target, rating, not named)
        self.record.rate(target, rating, comment)
        self.learn_cases()
        self.last = run.session_id

    @rule(which=replicas, session_id=sessions, pick=picks, rating=ratings)
    def feedback_that_has_nothing_to_bind_to(
        self, which: int, session_id: str, pick: int, rating: str
    ) -> None:
        """A run that is not the session's never takes it, nor does an unknown session."""
        foreign = [run.run_id for run in self.record.runs.values() if run.session_id != session_id]
        run_id = foreign[pick % len(foreign)] if foreign else "run-unknown"
        if session_id not in self.record.sessions and pick % 2:
            self.refused(SessionNotFound, self.rate(self.replica(which), session_id, None, rating, None))
        self.refused(RunNotFound, self.rate(self.replica(which), session_id, run_id, rating, None))

    # Sessions, time and death.

    @rule(which=replicas, session_id=sessions)
    def clear(self, which: int, session_id: str) -> None:
        cleared = self.replica(which).service.conversations.clear(session_id)
        if session_id not in self.record.sessions:
            self.refused(SessionNotFound, cleared)
            return
        self.do(cleared)
        self.record.sessions[session_id].conversation = []

    @rule(which=replicas, session_id=sessions)
    def erase(self, which: int, session_id: str) -> None:
        erased = self.replica(which).service.conversations.erase(session_id)
        self.last = session_id
        if session_id not in self.record.sessions:
            self.refused(SessionNotFound, erased)
            return
        by = self.replica(which)
        gone = self.do(erased)
        own = [run for run in self.record.of(session_id) if run.run_id in self.held]
        for run in own:
            assert not by.executes(run.run_id)
        expected = self.record.erase(session_id)
        cases, doubtful = expected.pop("cases"), expected.pop("doubtful_cases")
        assert {name: getattr(gone, name) for name in expected} == expected
        assert cases <= gone.cases <= cases + doubtful
        self.let_go()

    @rule(seconds=st.sampled_from([-40, -1, 0.000001, 1, 11, 31, 31]))
    def time_passes(self, seconds: float) -> None:
        self.fleet.clock.now += timedelta(seconds=seconds)

    @rule(which=replicas)
    def tick(self, which: int) -> None:
        by = self.replica(which)
        self.do(by.service.leases.tick())
        self.record.renew(by.owner, self.now)
        self.record.expire(self.now)
        for run_id in [run_id for run_id, holder in self.held.items() if holder is by]:
            run = self.record.runs.get(run_id)
            assert by.executes(run_id) == (run is not None and run.running)
        self.let_go()

    @rule(first=replicas)
    def leases_are_kept_for_a_while(self, first: int) -> None:
        """No run of a living replica ends by it; those of a dead one do."""
        for which in (first, 1 - first, first, 1 - first):
            self.fleet.clock.now += timedelta(seconds=10)
            self.tick(which)
            self.fleet.clock.now += timedelta(seconds=10)
            self.tick(1 - which)

    @rule(which=replicas)
    def die(self, which: int) -> None:
        dying = self.replica(which)
        self.do(self.fleet.replace(which))
        self.held = {run_id: by for run_id, by in self.held.items() if by is not dying}
