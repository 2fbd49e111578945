"""The figures of whole sessions and of their runs, counted by the database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import sqlalchemy as sa
from attrs import frozen

from casenotes.adapters.rows import Row
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.adapters.sql.tables import agent_step, diagnosis_run, diagnosis_session, tool_invocation
from casenotes.adapters.sql.transaction import Transaction, transaction
from casenotes.core.baseline.isolation import Counted, SessionFigures
from casenotes.core.words import RunStatus

PAGE = 500
"""Sessions that are counted by one set of statements."""

_run = diagnosis_run.c
_old = diagnosis_session.c


def _names(*tables: sa.Table) -> sa.Select[Any]:
    """The next session ids in any of these tables; of each table no more is read than may be needed."""
    parts = [
        sa.select(table.c.session_id).where(_after(table)).distinct().order_by(table.c.session_id).limit(PAGE)
        for table in tables
    ]
    names = sa.union(*(sa.select(part.subquery().c.session_id) for part in parts)).subquery()
    return sa.select(names.c.session_id).order_by(names.c.session_id).limit(PAGE)


def _after(table: sa.Table) -> sa.ColumnElement[bool]:
    return table.c.session_id > sa.bindparam("after", type_=sa.Text)


def _on_page(table: sa.Table) -> sa.ColumnElement[bool]:
    return sa.and_(_after(table), table.c.session_id <= sa.bindparam("last", type_=sa.Text))


_NAMES = _names(diagnosis_run, agent_step, tool_invocation)
_RUNS = (
    sa.select(_run.session_id, _run.run_id, _run.status, _run.step_count, _run.tool_call_count)
    .where(_on_page(diagnosis_run))
    .order_by(_run.session_id, _run.created_at, _run.id)
)
_RECORDED = (
    sa.select(_old.session_id, _old.step_count, _old.tool_call_count)
    .where(_on_page(diagnosis_session))
    .order_by(_old.created_at, _old.id)
)


def _by_session(table: sa.Table) -> sa.Select[Any]:
    """All rows of each session, of whatever run: the old system's figure."""
    return (
        sa.select(table.c.session_id, sa.func.count().label("number"))
        .where(_on_page(table))
        .group_by(table.c.session_id)
    )


def _by_run(table: sa.Table) -> sa.Select[Any]:
    return (
        sa.select(table.c.session_id, table.c.run_id, sa.func.count().label("number"))
        .where(_on_page(table))
        .group_by(table.c.session_id, table.c.run_id)
    )


@frozen
class SqlIsolationSource:
    """``casenotes.ports.isolation.IsolationSource`` over a SQL ledger."""

    _ledger: SqlLedger

    async def sessions(self) -> AsyncIterator[SessionFigures]:
        async with transaction(self._ledger.reading, self._ledger.dialect) as reading:
            after = ""
            while names := [row["session_id"] for row in await reading.all(_NAMES, {"after": after})]:
                page = {"after": after, "last": names[-1]}
                for figures in await _figures(reading, names, page):
                    yield figures
                after = names[-1]


async def _figures(
    reading: Transaction, names: Sequence[str], page: dict[str, Any]
) -> Sequence[SessionFigures]:
    steps, tools = [
        {row["session_id"]: row["number"] for row in await reading.all(_by_session(table), page)}
        for table in (agent_step, tool_invocation)
    ]
    rows = _counted(
        await reading.all(_by_run(agent_step), page), await reading.all(_by_run(tool_invocation), page)
    )
    reported: dict[str, dict[str, Counted]] = {}
    for row in await reading.all(_RUNS, page):
        said = Counted(row["step_count"], row["tool_call_count"])
        if row["status"] == RunStatus.RUNNING:
            said = rows.get(row["session_id"], {}).get(row["run_id"], Counted())
        reported.setdefault(row["session_id"], {})[row["run_id"]] = said
    recorded = {
        row["session_id"]: Counted(row["step_count"], row["tool_call_count"])
        for row in await reading.all(_RECORDED, page)
        if row["step_count"] is not None and row["tool_call_count"] is not None
    }
    return [
        SessionFigures(
            session_id=name,
            all=Counted(steps.get(name, 0), tools.get(name, 0)),
            reported=reported.get(name, {}),
            rows=rows.get(name, {}),
            recorded=recorded.get(name),
        )
        for name in names
    ]


def _counted(steps: Sequence[Row], tools: Sequence[Row]) -> dict[str, dict[str | None, Counted]]:
    found: dict[str, dict[str | None, Counted]] = {}
    for rows, kind in ((steps, "steps"), (tools, "tools")):
        for row in rows:
            of_session = found.setdefault(row["session_id"], {})
            one = Counted(**{kind: row["number"]})
            of_session[row["run_id"]] = of_session.get(row["run_id"], Counted()) + one
    return found
