"""What two replicas do at once: of several outcomes that are allowed, the one that came is taken into the model."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from fuzz import seeing
from fuzz.fleet import Replica
from fuzz.machine import Machine, comments, flows, picks, ratings, replicas, sessions
from fuzz.model import Run
from hypothesis import strategies as st
from hypothesis.stateful import rule

from casenotes.core.errors import NotFound, SessionNotFound
from casenotes.core.service.stream import Execution
from casenotes.core.views import FeedbackReceipt
from casenotes.core.words import AgentFlow
from casenotes.ports.agent import Answered, StepTaken

words = st.lists(st.tuples(replicas, ratings, comments, st.booleans()), min_size=2, max_size=5)
starts = st.lists(st.tuples(replicas, flows), min_size=2, max_size=4)


class Racing(Machine):
    """The rules for several things at once."""

    def at_once(self, *acts: Coroutine[Any, Any, Any]) -> list[Any]:
        """What comes of each: its result, or that something was not found."""

        async def both() -> list[Any]:
            return await asyncio.gather(*(_or_not_found(act) for act in acts))

        return self.do(both())

    def reading(self) -> Any:
        return self.fleet.living[0].service.reading

    def a_running(self, pick: int) -> tuple[Run, Replica] | None:
        """One of the runs that are RUNNING on record, with the replica that executes it."""
        if not self.held:
            return None
        run_id, by = self.a_held(pick)
        run = self.record.runs.get(run_id)
        return None if run is None or not run.running else (run, by)

    def expired_leases_held(self) -> list[str]:
        """Runs whose executor lives and has not renewed in time."""
        expired = {run.run_id for run in self.record.expired(self.now)}
        return [run_id for run_id in self.held if run_id in expired]

    @rule(pick=picks, said=words)
    def feedbacks_at_once(self, pick: int, said: list[tuple[int, str, str | None, bool]]) -> None:
        """One of them is the last word on its run, with its own comment; each was told the run that it changed."""
        if not self.record.runs:
            return
        run = self.a_run(pick)
        latest = self.record.latest(run.session_id)
        assert latest is not None
        receipts = self.at_once(
            *(
                self.rate(self.replica(which), run.session_id, run.run_id if named else None, rating, comment)
                for which, rating, comment, named in said
            )
        )
        of_run: dict[str, list[tuple[str, str | None]]] = {}
        cases: dict[str, set[int]] = {}
        for receipt, (_, rating, comment, named) in zip(receipts, said, strict=True):
            target = run if named else latest
            self.check_receipt(receipt, target, rating, not named)
            of_run.setdefault(target.run_id, []).append((rating, comment))
            if receipt.case_id is not None:
                cases.setdefault(target.run_id, set()).add(receipt.case_id)
        assert all(len(ids) == 1 for ids in cases.values()), "a run has one case"
        for run_id, allowed in of_run.items():
            changed = self.record.runs[run_id]
            last = self.seen(changed)["feedback"]
            assert last in allowed
            if run_id in cases:  # it was there for a moment at least
                self.record.rate(changed, "useful", None)
                (case_id,) = cases[run_id]
                assert self.record.cases[run_id].case_id in (None, case_id)
                self.record.cases[run_id].case_id = case_id
            self.record.rate(changed, *last)
        self.learn_cases()
        self.last = run.session_id

    def seen(self, run: Run) -> dict[str, Any]:
        return seeing.trace(self.do(self.reading().trace(run.session_id, run.run_id)))

    @rule(session_id=sessions, asked=starts)
    def starts_at_once(self, session_id: str, asked: list[tuple[int, AgentFlow]]) -> None:
        """Each makes one run, and all together one session."""
        executions = self.at_once(
            *(
                self.begin(self.replica(which), session_id, self.word("question"), flow)
                for which, flow in asked
            )
        )
        for execution, (which, _) in zip(executions, asked, strict=True):
            self.begun(self.replica(which), execution)
        self.take_order(session_id, executions)

    def take_order(self, session_id: str, executions: list[Execution]) -> None:
        new = {execution.run.run_id for execution in executions}
        seen = self.do(seeing.runs(self.reading(), session_id, 500))
        self.record.reorder(run["run_id"] for run in reversed(seen) if run["run_id"] in new)

    @rule(session_id=sessions, which=replicas, other=replicas, rating=ratings, flow=flows)
    def feedback_while_a_run_starts(
        self, session_id: str, which: int, other: int, rating: str, flow: AgentFlow
    ) -> None:
        """It changes the run that its answer names: the one that was latest before, or the new one."""
        before = self.record.latest(session_id)
        receipt, execution = self.at_once(
            self.rate(self.replica(which), session_id, None, rating, None),
            self.begin(self.replica(other), session_id, self.word("question"), flow),
        )
        new = self.begun(self.replica(other), execution)
        if isinstance(receipt, NotFound):
            assert before is None and isinstance(receipt, SessionNotFound)
            return
        assert receipt.run_id in (new.run_id, before and before.run_id)
        target = self.record.runs[receipt.run_id]
        self.check_receipt(receipt, target, rating, True)
        self.record.rate(target, rating, None)
        self.learn_cases()

    @rule(pick=picks, which=replicas, rating=ratings)
    def rated_while_it_ends(self, pick: int, which: int, rating: str) -> None:
        """Neither the end nor the word is lost, and the case is there if the word is useful."""
        if (chosen := self.a_running(pick)) is None:
            return
        run, by = chosen
        run_id = run.run_id
        answer = self.word("answer")
        receipt, _ = self.at_once(
            self.rate(self.replica(which), run.session_id, run_id, rating, None),
            by.lead(run_id, Answered(answer)),
        )
        assert isinstance(receipt, FeedbackReceipt)
        if run.feedback is not None and run.feedback[0] == "useful" and rating != "useful":
            self.record.doubtful.add(run_id)  # if it ended first, it made a case, which was withdrawn at once
        self.record.rate(run, rating, None)
        self.record.succeed(run, answer, self.now)
        self.learn_cases()
        self.let_go()
        self.last = run.session_id

    @rule(pick=picks, times=st.integers(2, 4))
    def read_while_it_ends(self, pick: int, times: int) -> None:
        """Each reader sees the run as it was, or as it is then: nothing between."""
        if (chosen := self.a_running(pick)) is None:
            return
        run, by = chosen
        run_id = run.run_id
        before, answer = self.record.trace(run, self.now), self.word("answer")
        reads = (self.replica(n % 2).service.reading.trace(run.session_id, run_id) for n in range(times))
        *traces, _ = self.at_once(*reads, by.lead(run_id, Answered(answer)))
        self.record.succeed(run, answer, self.now)
        after = self.record.trace(run, self.now)
        for one in traces:
            assert seeing.trace(one) in (before, after)
        self.learn_cases()
        self.let_go()
        self.last = run.session_id

    @rule(pick=picks)
    def steps_at_once(self, pick: int) -> None:
        """Those of one run never stand in another."""
        if len(self.held) < 2:
            return
        chosen = list(self.held)[pick % len(self.held) :][:3]
        outputs = {run_id: self.word("step") for run_id in chosen}
        self.at_once(
            *(
                self.held[run_id].lead(run_id, StepTaken("planner", output=output))
                for run_id, output in outputs.items()
            )
        )
        for run_id, output in outputs.items():
            run = self.record.runs.get(run_id)
            if run is None or not run.running:
                assert not self.held[run_id].executes(run_id)
            else:
                run.steps.append(output)
                self.last = run.session_id
        self.let_go()

    @rule(pick=picks)
    def ended_by_its_executor_and_by_another_at_once(self, pick: int) -> None:
        """One of the two ends the run; an answer that is not stored is not remembered either."""
        if not self.expired_leases_held():
            return
        late = self.expired_leases_held()
        run_id = late[pick % len(late)]
        run, by = self.record.runs[run_id], self.held[run_id]
        other = next(replica for replica in self.fleet.living if replica is not by)
        answer = self.word("answer")
        self.at_once(by.lead(run_id, Answered(answer)), other.service.leases.tick())
        self.record.renew(other.owner, self.now)
        self.record.expire(self.now, kept=[run])
        if self.seen(run)["answer"] is None:
            self.record.expire(self.now)
        else:
            self.record.succeed(run, answer, self.now)
        assert not run.running
        assert not by.executes(run_id)
        self.learn_cases()
        self.let_go()
        self.last = run.session_id

    @rule()
    def ticks_at_once(self) -> None:
        """A run whose lease has expired is renewed by its executor, or ended by the other: not both, and once."""
        late = [self.record.runs[run_id] for run_id in self.expired_leases_held()]
        self.at_once(*(replica.service.leases.tick() for replica in self.fleet.living))
        ended = [run for run in late if self.seen(run)["failed"]]
        for run in late:
            assert self.held[run.run_id].executes(run.run_id) == (run not in ended)
        self.record.expire(self.now, kept=[run for run in late if run not in ended])
        for replica in self.fleet.living:
            self.record.renew(replica.owner, self.now)
        self.let_go()

    @rule(session_id=sessions, which=replicas, other=replicas, flow=flows)
    def erased_while_a_run_starts(self, session_id: str, which: int, other: int, flow: AgentFlow) -> None:
        """What was there is gone; the new run is gone with it, or is the first of a new session."""
        eraser, by = self.replica(which), self.replica(other)
        erasure, execution = self.at_once(
            eraser.service.conversations.erase(session_id),
            self.begin(by, session_id, self.word("question"), flow),
        )
        if session_id in self.record.sessions:
            assert not isinstance(erasure, NotFound)
            self.record.erase(session_id)
        found = self.do(_or_not_found(seeing.runs(self.reading(), session_id, 500)))
        run_id = execution.run.run_id
        self.last = session_id
        if isinstance(found, NotFound):
            assert not isinstance(erasure, NotFound)
            self.held[run_id] = by
        else:
            assert [run["run_id"] for run in found] == [run_id]
            run = self.begun(by, execution)
            if found[0]["status"] == "FAILED":
                assert eraser is by
                self.record.fail(run, self.now)
        self.let_go()

    @rule(pick=picks, which=replicas)
    def erased_while_a_run_ends(self, pick: int, which: int) -> None:
        """Nothing is left of the session, whoever was first: its conversation is forgotten as well."""
        if (chosen := self.a_running(pick)) is None:
            return
        run, by = chosen
        run_id = run.run_id
        eraser = self.replica(which).service
        erasure, _ = self.at_once(
            eraser.conversations.erase(run.session_id), by.lead(run_id, Answered(self.word("answer")))
        )
        assert not isinstance(erasure, NotFound)
        assert not self.do(eraser.context.recall(run.session_id))
        self.record.erase(run.session_id)
        self.learn_cases()
        self.let_go()
        self.last = run.session_id

    @rule(session_id=sessions, which=replicas, other=replicas, rating=ratings)
    def rated_while_it_is_erased(self, session_id: str, which: int, other: int, rating: str) -> None:
        """Whatever the word was told, nothing of the session is left."""
        erasure, receipt = self.at_once(
            self.replica(which).service.conversations.erase(session_id),
            self.rate(self.replica(other), session_id, None, rating, None),
        )
        self.last = session_id
        if session_id in self.record.sessions:
            assert not isinstance(erasure, NotFound)
            self.record.erase(session_id)
        else:
            assert isinstance(erasure, SessionNotFound) and isinstance(receipt, SessionNotFound)
        self.let_go()


async def _or_not_found(act: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await act
    except NotFound as absent:
        return absent
