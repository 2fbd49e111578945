"""The case library in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from attrs import frozen

from casenotes.adapters.memory.state import Draft, Snapshot
from casenotes.adapters.rows import automatic_case_row, from_row
from casenotes.adapters.signatures import utc
from casenotes.core.model import Case
from casenotes.core.words import CaseStatus


@frozen
class CasesReader:
    """``casenotes.ports.ledger.CasesView``."""

    _snapshot: Snapshot

    async def of_run(self, run_id: str) -> Case | None:
        row = self._snapshot.state.automatic_case(run_id)
        return None if row is None else from_row(Case, row)

    async def page(self, *, query: str | None, before: int | None, limit: int) -> Sequence[Case]:
        rows = sorted(self._snapshot.state.cases.values(), key=lambda row: row["id"], reverse=True)
        rows = [row for row in rows if row["status"] == CaseStatus.ACTIVE]
        if before is not None:
            rows = [row for row in rows if row["id"] < before]
        if query is not None:
            wanted = query.lower()
            rows = [row for row in rows if wanted in row["query"].lower() or wanted in row["answer"].lower()]
        return [from_row(Case, row) for row in rows[:limit]]


@frozen
class CasesWriter(CasesReader):
    """``casenotes.ports.ledger.Cases``."""

    _snapshot: Draft

    async def put(self, case: Case) -> Case:
        given = automatic_case_row(case)
        stored = self._snapshot.state.automatic_case(case.diagnosis_id)
        if stored is None:
            row = {**given, "id": next(self._snapshot.ids.cases)}
        else:
            row = stored | {name: given[name] for name in ("query", "answer", "status", "updated_at")}
        self._snapshot.replace(cases={**self._snapshot.state.cases, row["id"]: row})
        return from_row(Case, row)

    async def withdraw(self, run_id: str, *, at: datetime) -> None:
        moment = utc(at)
        row = self._snapshot.state.automatic_case(run_id)
        if row is not None and row["status"] != CaseStatus.WITHDRAWN:
            withdrawn = {**row, "status": CaseStatus.WITHDRAWN.value, "updated_at": moment}
            self._snapshot.replace(cases={**self._snapshot.state.cases, row["id"]: withdrawn})
