"""How a session leaves the memory ledger."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from casenotes.adapters.memory.state import Draft, Place, State
from casenotes.adapters.rows import Row, to_row
from casenotes.adapters.signatures import utc
from casenotes.core.seal import ChainHead, session_digest
from casenotes.core.views import Erasure, Tombstone

K = TypeVar("K")
V = TypeVar("V")


def erase_session(draft: Draft, session_id: str, at: datetime, idle_since: datetime | None) -> Erasure | None:
    """Remove all that belongs to a session, and remember that; ``None`` when nothing does, or it is not idle."""
    state, erased_at = draft.state, utc(at)
    if idle_since is not None and not state.is_idle(session_id, utc(idle_since)):
        return None
    runs = set(state.runs_of.get(session_id, ()))
    steps, tools = _of(session_id, state.steps), _of(session_id, state.tools)
    cases = {number for number, case in state.cases.items() if _belongs(case, session_id, runs)}
    keys = {name for name, key in state.keys.items() if key["session_id"] == session_id}
    known = session_id in state.sessions or session_id in state.history
    if not (known or runs or steps or tools or cases or keys):
        return None
    erasure = Erasure(
        session_id=session_id,
        runs=len(runs),
        agent_steps=sum(map(len, steps.values())),
        tool_invocations=sum(map(len, tools.values())),
        cases=len(cases),
    )
    draft.replace(
        sessions=_without(state.sessions, {session_id}),
        runs=_without(state.runs, runs),
        runs_of=_without(state.runs_of, {session_id}),
        steps=_without(state.steps, set(steps)),
        tools=_without(state.tools, set(tools)),
        cases=_without(state.cases, cases),
        history=_without(state.history, {session_id}),
        keys=_without(state.keys, keys),
        chains=_without(state.chains, {session_id}),
        tombstones=(*state.tombstones, _tombstone(erasure, state, erased_at)),
    )
    return erasure


def _tombstone(erasure: Erasure, state: State, at: datetime) -> Row:
    head = state.chains.get(erasure.session_id, ChainHead())
    return to_row(
        Tombstone(
            session_digest=session_digest(erasure.session_id),
            runs=erasure.runs,
            agent_steps=erasure.agent_steps,
            tool_invocations=erasure.tool_invocations,
            cases=erasure.cases,
            ended_run_count=head.count,
            last_run_digest=head.digest,
            erased_at=at,
        )
    )


def _belongs(case: Row, session_id: str, runs: set[str]) -> bool:
    if case["session_id"] == session_id:
        return True
    if case["source"] == "AUTO":
        return case["diagnosis_id"] in runs
    return bool(case["diagnosis_id"] == session_id)  # the old system named a case by its session


def _of(session_id: str, journal: Mapping[Place, tuple[Row, ...]]) -> dict[Place, tuple[Row, ...]]:
    return {place: rows for place, rows in journal.items() if place[0] == session_id}


def _without(table: Mapping[K, V], gone: set[K]) -> dict[K, V]:
    return {key: row for key, row in table.items() if key not in gone}
