"""Runs in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final

from attrs import frozen

from casenotes.adapters.memory.state import Draft, Snapshot
from casenotes.adapters.rows import ending_row, feedback_row, from_row, run_summary, to_row
from casenotes.adapters.signatures import utc
from casenotes.core.errors import RunAlreadyExists, RunNotFound
from casenotes.core.model import DiagnosisRun, Feedback, RunKey
from casenotes.core.rules import counts_as_turn, lease_expired
from casenotes.core.seal import ChainHead, RunSeal
from casenotes.core.views import RunSummary
from casenotes.core.words import RunStatus

_BEFORE_ALL: Final = datetime.min.replace(tzinfo=UTC)


@frozen
class RunsReader:
    """``casenotes.ports.ledger.RunsView``."""

    _snapshot: Snapshot

    async def get(self, session_id: str, run_id: str) -> DiagnosisRun | None:
        row = self._snapshot.state.run(session_id, run_id)
        return None if row is None else from_row(DiagnosisRun, row)

    async def latest(self, session_id: str) -> DiagnosisRun | None:
        row = self._snapshot.state.latest_run(session_id)
        return None if row is None else from_row(DiagnosisRun, row)

    async def page(self, session_id: str, *, before: str | None, limit: int) -> Sequence[RunSummary]:
        state = self._snapshot.state
        rows = state.runs_in(session_id)
        if before is not None:
            last = state.run(session_id, before)
            if last is None:
                raise RunNotFound(session_id, before)
            rows = rows[rows.index(last) + 1 :]
        return [run_summary(row, row["answer"]) for row in rows[:limit]]

    async def expired(self, *, now: datetime, limit: int) -> Sequence[DiagnosisRun]:
        moment = utc(now)
        runs = [
            from_row(DiagnosisRun, row)
            for row in self._snapshot.state.runs.values()
            if row["status"] == RunStatus.RUNNING
        ]
        expired = [run for run in runs if lease_expired(run, moment)]
        return sorted(expired, key=lambda run: (run.lease_expires_at or _BEFORE_ALL, run.id))[:limit]


@frozen
class RunsWriter(RunsReader):
    """``casenotes.ports.ledger.Runs``."""

    _snapshot: Draft

    async def add(self, run: DiagnosisRun) -> DiagnosisRun:
        row = to_row(run)
        state = self._snapshot.state
        if run.run_id in state.runs:
            raise RunAlreadyExists(run.run_id)
        row["id"] = next(self._snapshot.ids.runs)
        of_session = (*state.runs_of.get(run.session_id, ()), run.run_id)
        self._snapshot.replace(
            runs={**state.runs, run.run_id: row}, runs_of={**state.runs_of, run.session_id: of_session}
        )
        return from_row(DiagnosisRun, row)

    async def lock(self, session_id: str, run_id: str) -> DiagnosisRun | None:
        return await self.get(session_id, run_id)  # units of work take turns: the whole ledger is kept

    async def lock_to_end(self, session_id: str, run_id: str) -> tuple[DiagnosisRun, ChainHead] | None:
        run, state = await self.get(session_id, run_id), self._snapshot.state
        if run is None or session_id not in state.sessions:
            return None
        return run, state.chains.get(session_id, ChainHead())

    async def lock_latest(self, session_id: str) -> DiagnosisRun | None:
        return await self.latest(session_id)

    async def end(self, run: DiagnosisRun, seal: RunSeal, *, expires_at: datetime | None) -> None:
        changes, expires = ending_row(run, seal), None if expires_at is None else utc(expires_at)
        self._snapshot.running(run.session_id, run.run_id)
        state = self._snapshot.state
        head, session = state.chains.get(run.session_id, ChainHead()), state.sessions.get(run.session_id)
        if session is None or seal.position != head.count + 1:
            raise ValueError("the seal does not continue the chain of its session")
        self._snapshot.update_run(run.session_id, run.run_id, changes)
        touched = {
            **session,
            "last_active_at": max(session["last_active_at"], changes["finished_at"]),
            "expires_at": expires or session["expires_at"],
            "message_pair_count": session["message_pair_count"] + counts_as_turn(run),
        }
        self._snapshot.replace(
            chains={**state.chains, run.session_id: seal.head},
            sessions={**state.sessions, run.session_id: touched},
        )

    async def set_context_degraded(self, session_id: str, run_id: str) -> None:
        self._snapshot.update_run(session_id, run_id, {"context_degraded": True})

    async def set_feedback(self, session_id: str, run_id: str, feedback: Feedback) -> None:
        changes = feedback_row(feedback)
        row = self._snapshot.state.run(session_id, run_id)
        if row is not None and changes["feedback_at"] is not None:
            changes["updated_at"] = max(row["updated_at"], changes["feedback_at"])
        self._snapshot.update_run(session_id, run_id, changes)

    async def renew(self, runs: Collection[RunKey], *, owner: str, until: datetime) -> frozenset[RunKey]:
        lease_end = utc(until)
        renewed = {}
        for session_id, run_id in runs:
            row = self._snapshot.state.run(session_id, run_id)
            if row is not None and row["status"] == RunStatus.RUNNING and row["lease_owner"] == owner:
                held = row["lease_expires_at"]
                latest = lease_end if held is None else max(held, lease_end)
                renewed[run_id] = {**row, "lease_expires_at": latest}
        self._snapshot.replace(runs={**self._snapshot.state.runs, **renewed})
        return frozenset((row["session_id"], run_id) for run_id, row in renewed.items())
