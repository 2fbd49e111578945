"""What a verification reads of a ledger in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from attrs import frozen

from casenotes.adapters.memory.ledger import MemoryLedger
from casenotes.adapters.memory.state import State
from casenotes.adapters.rows import Row, from_row, run_seal
from casenotes.core.model import AgentStep, Case, ChatSession, DiagnosisRun, ToolInvocation
from casenotes.core.seal import ChainHead
from casenotes.core.verification import StoredRun, StoredSession, Stray

_ALWAYS = datetime.min.replace(tzinfo=UTC)


@frozen
class MemorySessionSnapshot:
    """``casenotes.ports.verification.SessionSnapshot``."""

    stored: StoredSession
    _state: State

    async def runs(self) -> AsyncIterator[StoredRun]:
        for row in self._state.runs_in(self.stored.session_id):
            place = (row["session_id"], row["run_id"])
            case = self._state.automatic_case(row["run_id"])
            yield StoredRun(
                run_id=row["run_id"],
                run=from_row(DiagnosisRun, row),
                seal=None if row["digest"] is None else run_seal(row),
                steps=[from_row(AgentStep, step) for step in self._state.steps.get(place, ())],
                tools=[from_row(ToolInvocation, tool) for tool in self._state.tools.get(place, ())],
                case=None if case is None else from_row(Case, case),
            )


@frozen
class MemoryVerificationSource:
    """``casenotes.ports.verification.VerificationSource`` over a ledger in memory."""

    _ledger: MemoryLedger

    async def sealed_since(self) -> datetime | None:
        return _ALWAYS

    async def session_ids(self) -> AsyncIterator[str]:
        state = self._ledger.state
        of_cases = (case["session_id"] for case in state.cases.values() if case["session_id"] is not None)
        journals = (place[0] for place in (*state.steps, *state.tools))
        for name in sorted({*state.sessions, *state.runs_of, *journals, *of_cases}):
            yield name

    @asynccontextmanager
    async def session(self, session_id: str) -> AsyncIterator[MemorySessionSnapshot]:
        state = self._ledger.state
        row = state.sessions.get(session_id)
        stored = StoredSession(
            session_id=session_id,
            session=None if row is None else from_row(ChatSession, row),
            head=state.chains.get(session_id, ChainHead()),
            strays=tuple(_strays(state, session_id)),
            cases_without_run=tuple(
                number
                for number, case in state.cases.items()
                if case["session_id"] == session_id and _has_no_run(state, case, session_id)
            ),
            is_historical=session_id in state.history,
        )
        yield MemorySessionSnapshot(stored, state)

    async def homeless_cases(self) -> Sequence[int]:
        state = self._ledger.state
        return [
            number
            for number, case in state.cases.items()
            if case["session_id"] is None
            and case["source"] == "AUTO"
            and case["diagnosis_id"] not in state.runs
        ]


def _strays(state: State, session_id: str) -> list[Stray]:
    return [
        Stray(what, run_id, len(rows), run_id in state.runs)
        for what, journal in (("step", state.steps), ("tool call", state.tools))
        for (of_session, run_id), rows in journal.items()
        if of_session == session_id and run_id is not None and state.run(session_id, run_id) is None
    ]


def _has_no_run(state: State, case: Row, session_id: str) -> bool:
    return case["source"] == "AUTO" and state.run(session_id, case["diagnosis_id"]) is None
