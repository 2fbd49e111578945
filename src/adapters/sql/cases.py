"""The case library in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache

import sqlalchemy as sa
from attrs import frozen
from sqlalchemy.sql import Executable

from casenotes.adapters.rows import automatic_case_row, from_row
from casenotes.adapters.signatures import utc
from casenotes.adapters.sql.dialect import Dialect
from casenotes.adapters.sql.tables import UtcDateTime, case_library, is_automatic
from casenotes.adapters.sql.transaction import Transaction
from casenotes.core.model import Case
from casenotes.core.words import CaseStatus

_case = case_library.c

_of_this_run = sa.and_(_case.diagnosis_id == sa.bindparam("of_run"), is_automatic)

_OF_RUN = sa.select(case_library).where(_of_this_run)
_WITHDRAW = (
    sa.update(case_library)
    .where(_of_this_run, _case.status == CaseStatus.ACTIVE.value)
    .values(status=CaseStatus.WITHDRAWN.value, updated_at=sa.bindparam("at", type_=UtcDateTime))
)


@cache
def _page(dialect: Dialect, searched: bool, continued: bool) -> sa.Select[tuple[object, ...]]:
    page = sa.select(case_library).where(_case.status == CaseStatus.ACTIVE.value)
    if searched:
        query = sa.bindparam("text", type_=sa.Text)
        page = page.where(sa.or_(dialect.contains(_case.query, query), dialect.contains(_case.answer, query)))
    if continued:
        page = page.where(_case.id < sa.bindparam("before"))
    return page.order_by(_case.id.desc()).limit(sa.bindparam("limit"))


@cache
def putting(dialect: Dialect) -> Executable:
    insert = dialect.insert(case_library)
    renewed = {name: insert.excluded[name] for name in ("query", "answer", "status", "updated_at")}
    return insert.on_conflict_do_update(
        index_elements=["diagnosis_id"], index_where=is_automatic, set_=renewed
    ).returning(case_library)


@frozen
class CasesReader:
    """``casenotes.ports.ledger.CasesView``."""

    _transaction: Transaction

    async def of_run(self, run_id: str) -> Case | None:
        row = await self._transaction.one(_OF_RUN, {"of_run": run_id})
        return None if row is None else from_row(Case, row)

    async def page(self, *, query: str | None, before: int | None, limit: int) -> Sequence[Case]:
        statement = _page(self._transaction.dialect, query is not None, before is not None)
        given = {"text": query, "before": before}
        values = {name: value for name, value in given.items() if value is not None}
        rows = await self._transaction.all(statement, {**values, "limit": limit})
        return [from_row(Case, row) for row in rows]


@frozen
class CasesWriter(CasesReader):
    """``casenotes.ports.ledger.Cases``."""

    async def put(self, case: Case) -> Case:
        row = await self._transaction.one(putting(self._transaction.dialect), automatic_case_row(case))
        assert row is not None
        return from_row(Case, row)

    async def withdraw(self, run_id: str, *, at: datetime) -> None:
        await self._transaction.run(_WITHDRAW, {"of_run": run_id, "at": utc(at)})
