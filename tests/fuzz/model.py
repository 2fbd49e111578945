"""The record as the specification tells it, in plain Python: what every read of it must give.

Written from the specification alone; nothing of the service is used here.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from attrs import define, field

WINDOW = 6
LEASE = timedelta(seconds=30)
TTL = timedelta(seconds=50)


@define(eq=False)
class Run:
    """One execution. ``order`` is its place among all runs as they were stored."""

    run_id: str
    session_id: str
    query: str
    flow: str
    created_at: datetime
    order: int
    owner: str
    leased_until: datetime
    status: str = "RUNNING"
    answer: str | None = None
    steps: list[str] = field(factory=list)
    tools: list[tuple[str, int | None]] = field(factory=list)
    feedback: tuple[str, str | None] | None = None

    @property
    def running(self) -> bool:
        return self.status == "RUNNING"


@define(eq=False)
class Session:
    """A conversation: its metadata, and the turns that the next one is told."""

    created_at: datetime
    last_active_at: datetime
    expires_at: datetime
    pairs: int = 0
    conversation: list[tuple[str, str]] = field(factory=list)


@define(eq=False)
class Case:
    """The one case of a run; ``case_id`` once anybody was told it."""

    run: Run
    active: bool
    case_id: int | None = None


@define(eq=False)
class Record:
    """All that is on record."""

    sessions: dict[str, Session] = field(factory=dict)
    runs: dict[str, Run] = field(factory=dict)
    cases: dict[str, Case] = field(factory=dict)
    doubtful: set[str] = field(factory=set)
    """Runs of which nobody can tell by reading whether they have a case that was withdrawn as soon as it was made."""

    keys: dict[str, tuple[str, str]] = field(factory=dict)
    stored: int = 0

    def start(self, run_id: str, session_id: str, query: str, flow: str, owner: str, now: datetime) -> Run:
        assert run_id not in self.runs, "a run id is unique"
        session = self.sessions.setdefault(session_id, Session(now, now, now + TTL))
        self._touch(session, now)
        session.expires_at = now + TTL
        self.stored += 1
        self.runs[run_id] = Run(run_id, session_id, query, flow, now, self.stored, owner, now + LEASE)
        return self.runs[run_id]

    def reorder(self, run_ids: Iterable[str]) -> None:
        """These runs, oldest first, were stored in this order: nobody can have known before."""
        for run_id in run_ids:
            self.stored += 1
            self.runs[run_id].order = self.stored

    def succeed(self, run: Run, answer: str, now: datetime) -> None:
        self._end(run, "SUCCESS", now)
        run.answer = answer
        session = self.sessions[run.session_id]
        session.expires_at = now + TTL
        if run.flow != "AI_OPS":
            session.pairs += 1
            session.conversation = [*session.conversation, (run.query, answer)][-WINDOW:]
        self._keep_case(run)

    def fail(self, run: Run, now: datetime) -> None:
        self._end(run, "FAILED", now)
        self.sessions[run.session_id].expires_at = now + TTL

    def expire(self, now: datetime, kept: Iterable[Run] = ()) -> None:
        """End the runs whose lease has expired, save these."""
        for run in self.expired(now):
            if run not in kept:
                self._end(run, "FAILED", now)

    def expired(self, now: datetime) -> list[Run]:
        return [run for run in self.runs.values() if run.running and run.leased_until < now]

    def renew(self, owner: str, now: datetime) -> None:
        """A lease is not cut short when the clock was set back."""
        for run in self.runs.values():
            if run.running and run.owner == owner:
                run.leased_until = max(run.leased_until, now + LEASE)

    def rate(self, run: Run, rating: str, comment: str | None) -> None:
        """The last word wins; a useful answer makes the run's case, anything else withdraws it."""
        run.feedback = (rating, comment)
        self._keep_case(run)

    def erase(self, session_id: str) -> dict[str, int]:
        """Forget a session; what was removed with it."""
        runs = self.of(session_id)
        removed = {
            "runs": len(runs),
            "agent_steps": sum(len(run.steps) for run in runs),
            "tool_invocations": sum(len(run.tools) for run in runs),
            "cases": sum(run.run_id in self.cases for run in runs),
            "doubtful_cases": sum(
                run.run_id in self.doubtful and run.run_id not in self.cases for run in runs
            ),
        }
        del self.sessions[session_id]
        for run in runs:
            del self.runs[run.run_id]
            self.cases.pop(run.run_id, None)
        self.keys = {key: held for key, held in self.keys.items() if held[1] in self.runs}
        return removed

    def of(self, session_id: str) -> list[Run]:
        """The runs of a session, newest first."""
        own = [run for run in self.runs.values() if run.session_id == session_id]
        return sorted(own, key=lambda run: (run.created_at, run.order), reverse=True)

    def latest(self, session_id: str) -> Run | None:
        return next(iter(self.of(session_id)), None)

    def _touch(self, session: Session, now: datetime) -> None:
        session.last_active_at = max(session.last_active_at, now)

    def _end(self, run: Run, status: str, now: datetime) -> None:
        assert run.running, "a run ends once"
        run.status = status
        self._touch(self.sessions[run.session_id], now)

    def _keep_case(self, run: Run) -> None:
        useful = run.feedback is not None and run.feedback[0] == "useful" and run.answer is not None
        if useful:
            self.cases.setdefault(run.run_id, Case(run, True)).active = True
        elif run.run_id in self.cases:
            self.cases[run.run_id].active = False

    # What reads give.

    def session(self, session_id: str, now: datetime) -> dict[str, Any]:
        session = self.sessions[session_id]
        return {
            "session_id": session_id,
            "status": "EXPIRED" if session.expires_at <= now else "ACTIVE",
            "message_pair_count": session.pairs,
            "created_at": session.created_at,
            "last_active_at": session.last_active_at,
            "expires_at": session.expires_at,
        }

    def summary(self, run: Run) -> dict[str, Any]:
        return {
            "run_id": run.run_id,
            "session_id": run.session_id,
            "query": run.query,
            "status": run.status,
            "agent_flow": run.flow,
            "answer_preview": None if run.answer is None else " ".join(run.answer.split()),
            "created_at": run.created_at,
            "counts": None if run.running else (len(run.steps), len(run.tools)),
        }

    def trace(self, run: Run, now: datetime) -> dict[str, Any]:
        return {
            "session": self.session(run.session_id, now),
            "run": self.summary(run),
            "failed": run.status == "FAILED",
            "answer": run.answer,
            "steps": list(enumerate(run.steps, 1)),
            "tools": [(number, *tool) for number, tool in enumerate(run.tools, 1)],
            "feedback": run.feedback,
            "evaluated": run.status == "SUCCESS" and run.flow == "AI_OPS",
        }

    def overview(self, session_id: str, now: datetime) -> dict[str, Any]:
        latest = self.of(session_id)[0]
        return {
            **self.session(session_id, now),
            "run_count": len(self.of(session_id)),
            "last_run_id": latest.run_id,
            "last_query": latest.query,
        }

    def library(self) -> list[dict[str, Any]]:
        """The active cases, newest first."""
        active = [case for case in self.cases.values() if case.active]
        return [
            {
                "id": case.case_id,
                "diagnosis_id": case.run.run_id,
                "session_id": case.run.session_id,
                "query": case.run.query,
                "answer": case.run.answer,
            }
            for case in sorted(active, key=lambda case: case.case_id or 0, reverse=True)
        ]
