"""What the memory ledger holds, as values that are replaced and never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import count
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from casenotes.adapters.rows import Row
from casenotes.core.errors import InvalidTransition, RunNotFound
from casenotes.core.seal import ChainHead
from casenotes.core.words import RunStatus

Place: TypeAlias = tuple[str, str | None]
"""(session id, run id): where steps and tool calls belong; without a run id, old rows that belong to no run."""


@frozen
class State:
    """All rows at one moment. A row in it is never changed, so that a snapshot is no more than a reference."""

    sessions: Mapping[str, Row] = field(factory=dict)
    runs: Mapping[str, Row] = field(factory=dict)
    """By run id, which is unique over all sessions."""
    runs_of: Mapping[str, tuple[str, ...]] = field(factory=dict)
    """The run ids of a session, in the order in which they were stored."""
    steps: Mapping[Place, tuple[Row, ...]] = field(factory=dict)
    tools: Mapping[Place, tuple[Row, ...]] = field(factory=dict)
    cases: Mapping[int, Row] = field(factory=dict)
    history: Mapping[str, tuple[Row, ...]] = field(factory=dict)
    keys: Mapping[str, Row] = field(factory=dict)
    chains: Mapping[str, ChainHead] = field(factory=dict)
    """By session: where the chain of its ended runs stands."""
    tombstones: tuple[Row, ...] = ()

    def run(self, session_id: str, run_id: str) -> Row | None:
        """The row of this session's run."""
        row = self.runs.get(run_id)
        return row if row is not None and row["session_id"] == session_id else None

    def runs_in(self, session_id: str) -> list[Row]:
        """The rows of a session's runs, newest first."""
        rows = [self.runs[run_id] for run_id in self.runs_of.get(session_id, ())]
        return sorted(rows, key=lambda row: (row["created_at"], row["id"]), reverse=True)

    def latest_run(self, session_id: str) -> Row | None:
        """The row of a session's newest run."""
        return next(iter(self.runs_in(session_id)), None)

    def is_idle(self, session_id: str, since: datetime) -> bool:
        """Whether there is such a session, last active before then and without a RUNNING run."""
        row = self.sessions.get(session_id)
        if row is None or row["last_active_at"] >= since:
            return False
        return all(run["status"] != RunStatus.RUNNING for run in self.runs_in(session_id))

    def historical(self, session_id: str) -> Row | None:
        """The latest historical row of a session."""
        rows = self.history.get(session_id, ())
        return max(rows, key=lambda row: (row["created_at"], row["id"]), default=None)

    def automatic_case(self, run_id: str) -> Row | None:
        """The row of the automatic case made of a run."""
        found = (row for row in self.cases.values() if _is_automatic(row, run_id))
        return next(found, None)


def _is_automatic(case: Row, run_id: str) -> bool:
    return bool(case["diagnosis_id"] == run_id and case["source"] == "AUTO")


@define
class Ids:
    """Numbers that the store assigns: they rise and are never given twice, also when a unit of work rolls back."""

    runs: Iterator[int] = field(factory=lambda: count(1))
    steps: Iterator[int] = field(factory=lambda: count(1))
    tools: Iterator[int] = field(factory=lambda: count(1))
    cases: Iterator[int] = field(factory=lambda: count(1))
    history: Iterator[int] = field(factory=lambda: count(1))


@define
class Snapshot:
    """The state that a view reads: that of its first read, for as long as its block is open."""

    _committed: Callable[[], State]
    _pinned: State | None = field(default=None, init=False)
    _open: bool = field(default=True, init=False)

    @property
    def state(self) -> State:
        if not self._open:
            raise RuntimeError("the block of this ledger view or unit of work has ended")
        if self._pinned is None:
            self._pinned = self._committed()
        return self._pinned

    def end(self) -> None:
        """The block has ended."""
        self._open = False


@define
class Draft(Snapshot):
    """The state that a unit of work reads and writes: its own until it is committed."""

    ids: Ids

    def replace(self, **tables: object) -> None:
        """Put these tables in place of the old ones."""
        self._pinned = evolve(self.state, **tables)  # type: ignore[arg-type]

    def update_run(self, session_id: str, run_id: str, changes: Mapping[str, object]) -> None:
        """Change columns of a run. Raises ``RunNotFound``."""
        row = self.state.run(session_id, run_id)
        if row is None:
            raise RunNotFound(session_id, run_id)
        self.replace(runs={**self.state.runs, run_id: {**row, **changes}})

    def running(self, session_id: str, run_id: str) -> Row:
        """The row of a RUNNING run. Raises ``RunNotFound`` or ``InvalidTransition``."""
        row = self.state.run(session_id, run_id)
        if row is None:
            raise RunNotFound(session_id, run_id)
        if row["status"] != RunStatus.RUNNING:
            raise InvalidTransition(run_id)
        return row
