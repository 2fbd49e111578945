"""What a verification reads of an SQL ledger."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from attrs import frozen

from casenotes.adapters.rows import AnyRow, Row, from_row, run_seal
from casenotes.adapters.sql.dialect import SQLITE
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.adapters.sql.tables import (
    agent_step,
    case_library,
    chat_session,
    diagnosis_run,
    diagnosis_session,
    is_automatic,
    ledger_epoch,
    tool_invocation,
)
from casenotes.adapters.sql.transaction import Transaction, transaction
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.model import AgentStep, Case, ChatSession, DiagnosisRun, ToolInvocation
from casenotes.core.seal import ChainHead, RunSeal
from casenotes.core.verification import StoredRun, StoredSession, Stray

IDS: Final = 500
RUNS: Final = 50
"""Session ids, and runs with all their rows, that are read at a time."""

_run, _case = diagnosis_run.c, case_library.c
_of_session = sa.bindparam("of_session", type_=sa.Text)
_run_ids: sa.BindParameter[Any] = sa.bindparam("run_ids", expanding=True)

# Read past what their types do on reading: one value that was tampered with would hide its whole page.
_read_columns = [
    *(column for column in diagnosis_run.c if column is not _run.entry_digests),
    sa.type_coerce(_run.entry_digests, sa.types.NullType()).label("entry_digests"),
]
_SEAL: Final = ("digest", "previous_digest", "chain_position", "entry_digests")

_SINCE = sa.select(ledger_epoch.c.began_at).where(ledger_epoch.c.name == "digests")


def _ids(
    follows: Callable[[sa.ColumnElement[str], sa.ColumnElement[str]], sa.ColumnElement[bool]],
) -> sa.Select[Any]:
    """The next session ids in any of these tables; of each table no more is read than may be needed."""
    after = sa.bindparam("after", type_=sa.Text)
    parts = [
        sa.select(table.c.session_id)
        .where(follows(table.c.session_id, after))
        .distinct()
        .order_by(table.c.session_id)
        .limit(IDS)
        .subquery()
        for table in (chat_session, diagnosis_run, agent_step, tool_invocation, case_library)
    ]
    names = sa.union(*(sa.select(part.c.session_id) for part in parts)).subquery()
    return sa.select(names.c.session_id).order_by(names.c.session_id).limit(IDS)


def _strays(table: sa.Table) -> sa.Select[Any]:
    """The rows of the session that name a run which is not the session's, by run, and whether another has it."""
    own = sa.exists().where(_run.run_id == table.c.run_id, _run.session_id == table.c.session_id)
    other = diagnosis_run.alias()
    return (
        sa.select(
            table.c.run_id,
            sa.func.count().label("number"),
            sa.exists().where(other.c.run_id == table.c.run_id).label("is_foreign"),
        )
        .where(table.c.session_id == _of_session, table.c.run_id.is_not(None), ~own)
        .group_by(table.c.run_id)
        .order_by(table.c.run_id)
    )


def _of_runs(table: sa.Table) -> sa.Select[Any]:
    return (
        sa.select(table)
        .where(table.c.session_id == _of_session, table.c.run_id.in_(_run_ids))
        .order_by(table.c.sequence, table.c.id)
    )


_FIRST_IDS = _ids(operator.ge)  # an empty id is one too
_NEXT_IDS = _ids(operator.gt)
_SESSION = sa.select(chat_session).where(chat_session.c.session_id == _of_session)
_HISTORICAL = sa.select(diagnosis_session.c.id).where(diagnosis_session.c.session_id == _of_session).limit(1)
_STRAYS = {"step": _strays(agent_step), "tool call": _strays(tool_invocation)}
_CASES_WITHOUT_RUN = (
    sa.select(_case.id)
    .where(
        _case.session_id == _of_session,
        is_automatic,
        ~sa.exists().where(_run.run_id == _case.diagnosis_id, _run.session_id == _case.session_id),
    )
    .order_by(_case.id)
)
_HOMELESS_CASES = (
    sa.select(_case.id)
    .where(_case.session_id.is_(None), is_automatic, ~sa.exists().where(_run.run_id == _case.diagnosis_id))
    .order_by(_case.id)
)
_AFTER = sa.and_(_run.session_id == _of_session, _run.id > sa.bindparam("after", type_=sa.BigInteger))
_RUNS = sa.select(*_read_columns).where(_AFTER).order_by(_run.id).limit(sa.bindparam("size"))
_PLACES = (
    sa.select(*(column for column in _read_columns if column.name in ("id", "run_id", *_SEAL)))
    .where(_AFTER)
    .order_by(_run.id)
    .limit(1)
)
_BEFORE_ANY_ID: Final = -(2**63)
_STEPS = _of_runs(agent_step)
_TOOLS = _of_runs(tool_invocation)
_CASES = sa.select(case_library).where(_case.diagnosis_id.in_(_run_ids), is_automatic)

Model = TypeVar("Model")


@frozen
class SqlSessionSnapshot:
    """``casenotes.ports.verification.SessionSnapshot``."""

    stored: StoredSession
    _transaction: Transaction

    async def runs(self) -> AsyncIterator[StoredRun]:
        after, size = _BEFORE_ANY_ID, RUNS
        while True:
            try:
                page = await self._page(after, size)
            except LedgerUnavailable:
                # SQLite refuses a page for one text that is no UTF-8; in Postgres nobody can write one.
                if self._transaction.dialect is not SQLITE:
                    raise
                if size > 1:
                    size = 1
                    continue
                page = await self._unreadable(after)
            for number, run in page:
                yield run
                after = number
            if not page:
                return
            if size == 1:
                size = RUNS

    async def _page(self, after: int, size: int) -> Sequence[tuple[int, StoredRun]]:
        session: Row = {"of_session": self.stored.session_id}
        rows = await self._transaction.all(_RUNS, session | {"after": after, "size": size})
        if not rows:
            return ()
        page = session | {"run_ids": [row["run_id"] for row in rows]}
        steps = _by_run(await self._transaction.all(_STEPS, page), "run_id")
        tools = _by_run(await self._transaction.all(_TOOLS, page), "run_id")
        cases = _by_run(await self._transaction.all(_CASES, {"run_ids": page["run_ids"]}), "diagnosis_id")
        names = [(row["id"], row["run_id"]) for row in rows]
        return [
            (number, _stored_run(row, steps[name], tools[name], cases[name]))
            for row, (number, name) in zip(rows, names, strict=True)
        ]

    async def _unreadable(self, after: int) -> Sequence[tuple[int, StoredRun]]:
        """The next run, of whose rows one cannot be fetched at all: only its place in the chain is read."""
        session: Row = {"of_session": self.stored.session_id}
        rows = await self._transaction.all(_PLACES, session | {"after": after})
        return [
            (
                row["id"],
                StoredRun(
                    row["run_id"], None, seal, is_seal_unreadable=is_broken, are_entries_unreadable=True
                ),
            )
            for row in rows
            for seal, is_broken in [_seal_of(row)]
        ]


@frozen
class SqlVerificationSource:
    """``casenotes.ports.verification.VerificationSource`` over an SQL ledger."""

    _ledger: SqlLedger

    async def sealed_since(self) -> datetime | None:
        async with transaction(self._ledger.reading, self._ledger.dialect) as reading:
            row = await reading.one(_SINCE)
        return None if row is None else row["began_at"]

    async def session_ids(self) -> AsyncIterator[str]:
        statement, after = _FIRST_IDS, ""
        while True:
            async with transaction(self._ledger.reading, self._ledger.dialect) as reading:
                rows = await reading.all(statement, {"after": after})
            for row in rows:
                if isinstance(
                    row["session_id"], str
                ):  # in SQLite it may be anything; its runs are missed elsewhere
                    yield row["session_id"]
            if not rows:
                return
            statement, after = _NEXT_IDS, rows[-1]["session_id"]

    @asynccontextmanager
    async def session(self, session_id: str) -> AsyncIterator[SqlSessionSnapshot]:
        async with transaction(self._ledger.reading, self._ledger.dialect) as reading:
            yield SqlSessionSnapshot(await _stored_session(reading, session_id), reading)

    async def homeless_cases(self) -> Sequence[int]:
        async with transaction(self._ledger.reading, self._ledger.dialect) as reading:
            return [row["id"] for row in await reading.all(_HOMELESS_CASES)]


async def _stored_session(reading: Transaction, session_id: str) -> StoredSession:
    session = {"of_session": session_id}
    chat, head, is_unreadable = None, None, False
    try:
        row = await reading.one(_SESSION, session)
    except LedgerUnavailable:
        if reading.dialect is not SQLITE:
            raise
        row, is_unreadable = None, True
    if row is not None:
        chat, head = _read(ChatSession, row), _head_of(row)
        is_unreadable = chat is None or head is None
    strays = [
        Stray(what, stray["run_id"], stray["number"], bool(stray["is_foreign"]))
        for what, statement in _STRAYS.items()
        for stray in await reading.all(statement, session)
    ]
    return StoredSession(
        session_id=session_id,
        session=chat,
        head=head,
        strays=tuple(strays),
        cases_without_run=tuple(case["id"] for case in await reading.all(_CASES_WITHOUT_RUN, session)),
        is_historical=await reading.one(_HISTORICAL, session) is not None,
        is_unreadable=is_unreadable,
    )


def _by_run(rows: Sequence[Row], column: str) -> Mapping[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return found


def _stored_run(row: AnyRow, steps: Sequence[Row], tools: Sequence[Row], cases: Sequence[Row]) -> StoredRun:
    read_steps, unreadable_steps = _read_all(AgentStep, steps)
    read_tools, unreadable_tools = _read_all(ToolInvocation, tools)
    seal, is_seal_unreadable = _seal_of(row)
    case = _read(Case, cases[0]) if cases else None
    return StoredRun(
        run_id=row["run_id"],
        run=_read(DiagnosisRun, row),
        seal=seal,
        steps=read_steps,
        tools=read_tools,
        case=case,
        unreadable_steps=unreadable_steps,
        unreadable_tools=unreadable_tools,
        is_seal_unreadable=is_seal_unreadable,
        is_case_unreadable=bool(cases) and case is None,
    )


def _read(model: type[Model], row: AnyRow) -> Model | None:
    try:
        return from_row(model, row)
    except (LedgerUnavailable, *_UNREADABLE):
        return None


_UNREADABLE: Final = (ValueError, TypeError, RecursionError)
"""What a value of a wrong type, or JSON that is none or too deep, does to who reads it."""


def _read_all(model: type[Model], rows: Sequence[Row]) -> tuple[Sequence[Model], Sequence[int]]:
    """What can be read, and the sequences of what cannot."""
    found = [(_read(model, row), row["sequence"]) for row in rows]
    return (
        [made for made, _ in found if made is not None],
        [sequence if isinstance(sequence, int) else 0 for made, sequence in found if made is None],
    )


def _seal_of(row: AnyRow) -> tuple[RunSeal | None, bool]:
    """The seal that a row holds, if any, and whether what it holds is none."""
    try:
        seal = run_seal(row)
    except _UNREADABLE:
        return None, True
    if seal is None:
        return None, row["previous_digest"] is not None
    return (None, True) if not isinstance(seal.previous, str | None) else (seal, False)


def _head_of(row: AnyRow) -> ChainHead | None:
    """``None`` for values of other types, which SQLite lets one write."""
    count, digest = row["ended_run_count"], row["last_run_digest"]
    return ChainHead(count, digest) if isinstance(count, int) and isinstance(digest, str | None) else None
