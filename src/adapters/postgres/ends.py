"""Runs that end together in PostgreSQL: one transaction, whose statements are each sent once for all of them.

Nobody in it waits for a row that others hold: such a run is passed over, and ends in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from attrs import define, field, frozen
from sqlalchemy.sql import Executable

from casenotes.adapters.postgres.pool import PostgresConnection, PostgresConnections
from casenotes.adapters.postgres.sending import each_of
from casenotes.adapters.rows import Row, automatic_case_row, from_row
from casenotes.adapters.sql.cases import putting
from casenotes.adapters.sql.compiled import compiled
from casenotes.adapters.sql.dialect import POSTGRES
from casenotes.adapters.sql.group import Failed, Group
from casenotes.adapters.sql.journal import ENTRIES, entries_in
from casenotes.adapters.sql.runs import END_AND_MOVE_HEAD, LOCK_TO_END_IF_FREE, end_values, this_run
from casenotes.adapters.sql.transaction import translated
from casenotes.core.ending import Decide, OnRecord
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.model import DiagnosisRun, RunKey
from casenotes.core.seal import ChainHead

ABREAST: Final = 1
"""Transactions of ends that are under way at a time."""

MOST: Final = 16
"""How many runs end in one of them: with more, the server waits for this process, and then this process for it."""

_Outcome: TypeAlias = DiagnosisRun | Failed | None
"""The run as stored, why it is not, or nothing: it has to end alone."""

_Prepared: TypeAlias = tuple[str, Sequence[Any]]
"""A statement and its arguments, as the driver takes them."""


@frozen(eq=False)
class _Asked:
    """Somebody's wish that a run end."""

    key: RunKey
    decide: Decide


@define(eq=False)
class PostgresEnds:
    """``casenotes.ports.ledger.Ledger.end``, for runs that may end with others."""

    _writing: PostgresConnections
    _group: Group[_Asked, DiagnosisRun | None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._group = Group(self._write, ABREAST, MOST)

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun | None:
        """The run as stored; ``None`` if nothing was done and it has to end alone.

        Raises what ``decide`` raises, and ``LedgerUnavailable`` where nobody knows what was done.
        """
        return await self._group.put(_Asked((session_id, run_id), decide))

    async def done(self) -> None:
        await self._group.done()

    async def _write(self, asked: Sequence[_Asked]) -> Sequence[_Outcome]:
        used: PostgresConnection | None = None
        is_told_to_commit = False
        try:
            with translated(POSTGRES):
                async with self._writing.connection() as used:
                    await used.begin()
                    standing = await _locked(used, asked)
                    outcomes = [standing.settle(one) for one in asked]
                    if standing.ends:
                        if len(await _sent(used, standing.ends)) != len(standing.ends):
                            return [None] * len(asked)  # one does not fit its record, and tells so alone
                        await _sent(used, standing.cases)
                        is_told_to_commit = True
                        await used.commit()
        except (LedgerUnavailable, ValueError):
            if used is None or (is_told_to_commit and used.is_lost):
                raise
            return [None] * len(asked)
        return outcomes


async def _locked(used: PostgresConnection, asked: Sequence[_Asked]) -> _Standing:
    """What stands on record of the runs that nobody else holds."""
    places = [this_run(*key) for key in {one.key for one in asked}]
    runs = await each_of(used, LOCK_TO_END_IF_FREE, places)
    entries: dict[RunKey, list[Row]] = {_key(row): [] for row in runs}
    if runs:
        for row in await each_of(used, ENTRIES, [this_run(*key) for key in entries]):
            entries[_key(row)].append(row)
    return _Standing(
        {_key(row): row for row in runs},
        entries,
        {row["session_id"]: ChainHead(row["chain_count"], row["chain_digest"]) for row in runs},
    )


async def _sent(used: PostgresConnection, prepared: Sequence[_Prepared]) -> Sequence[Row]:
    """What came of a statement, prepared with the values of each."""
    if not prepared:
        return ()
    return await used.fetch_each(prepared[0][0], [arguments for _, arguments in prepared])


def _prepared(statement: Executable, values: Row) -> _Prepared:
    made = compiled(statement, values, POSTGRES.compiler)
    return made.sql, made.arguments(values)


@define
class _Standing:
    """What stands on record of runs that are locked, and what is to be written of them, as each decision leaves it."""

    runs: dict[RunKey, Row]
    entries: Mapping[RunKey, Sequence[Row]]
    heads: dict[str, ChainHead]
    ends: list[_Prepared] = field(factory=list, init=False)
    cases: list[_Prepared] = field(factory=list, init=False)

    def settle(self, one: _Asked) -> _Outcome:
        """Take a decision. Nothing is left of one that raises."""
        try:
            return self._settle(one)
        except Exception as fault:
            return Failed(fault)

    def _settle(self, one: _Asked) -> DiagnosisRun | None:
        row, session_id = self.runs.pop(one.key, None), one.key[0]
        if row is None:
            return None  # not there, held by others, or another here decides of it
        run, head = from_row(DiagnosisRun, row), self.heads[session_id]
        end = one.decide(OnRecord(run, *entries_in(self.entries[one.key]), head))
        if end is None:
            return run
        written = _prepared(END_AND_MOVE_HEAD, end_values(end.run, end.seal, end.expires_at))
        if end.case is not None:
            self.cases.append(_prepared(putting(POSTGRES), automatic_case_row(end.case)))
        self.ends.append(written)
        self.heads[session_id] = end.seal.head
        return end.stored


def _key(row: Row) -> RunKey:
    return row["session_id"], row["run_id"]
