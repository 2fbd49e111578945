"""Runs that end together in PostgreSQL: one transaction, whose statements are each sent once for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeVar

from attrs import define, field, frozen

from casenotes.adapters.postgres.pool import PostgresConnection, PostgresConnections
from casenotes.adapters.postgres.sending import each_of
from casenotes.adapters.rows import Row, from_row
from casenotes.adapters.sql.dialect import POSTGRES
from casenotes.adapters.sql.group import Failed, Group
from casenotes.adapters.sql.journal import ENTRIES, entries_in
from casenotes.adapters.sql.runs import END_AND_MOVE_HEAD, LOCK, end_values, this_run
from casenotes.adapters.sql.sessions import LOCK_CHAIN
from casenotes.adapters.sql.transaction import translated
from casenotes.core.ending import Decide, OnRecord
from casenotes.core.errors import LedgerUnavailable, RunNotFound
from casenotes.core.model import DiagnosisRun, RunKey
from casenotes.core.seal import ChainHead
from casenotes.ports.ledger import Body
from casenotes.ports.through_work import ending

T = TypeVar("T")

ABREAST: Final = 1
"""Transactions of ends that are under way at a time."""

MOST: Final = 16
"""How many runs end in one of them: with more, the server waits for this process, and then this process for it."""


@frozen(eq=False)
class _Asked:
    """Somebody's wish that a run end."""

    key: RunKey
    decide: Decide


class _Transact(Protocol):
    async def __call__(self, body: Body[T]) -> T: ...


@define(eq=False)
class PostgresEnds:
    """``casenotes.ports.ledger.Ledger.end``. ``transact`` carries out what ends alone."""

    _writing: PostgresConnections
    _transact: _Transact
    _group: Group[_Asked, DiagnosisRun] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._group = Group(self._write, ABREAST, MOST)

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        return await self._group.put(_Asked((session_id, run_id), decide))

    async def done(self) -> None:
        await self._group.done()

    async def _write(self, asked: Sequence[_Asked]) -> Sequence[DiagnosisRun | Failed]:
        outcomes = await self._together(asked) if len(asked) > 1 else [None]
        return [
            await self._alone(one) if outcome is None else outcome
            for one, outcome in zip(asked, outcomes, strict=True)
        ]

    async def _together(self, asked: Sequence[_Asked]) -> Sequence[DiagnosisRun | Failed | None]:
        """What became of each: ``None`` if nothing was done, and it has to end alone.

        Raises ``LedgerUnavailable`` where nobody knows what became of them.
        """
        used: PostgresConnection | None = None
        try:
            with translated(POSTGRES):
                async with self._writing.connection() as used:
                    await used.begin()
                    return await _end_all(used, asked)
        except (LedgerUnavailable, ValueError):
            if used is None or used.is_lost:
                raise
            return [None] * len(asked)

    async def _alone(self, one: _Asked) -> DiagnosisRun | Failed:
        try:
            return await self._transact(ending(*one.key, one.decide))
        except Exception as fault:
            return Failed(fault)


async def _end_all(
    used: PostgresConnection, asked: Sequence[_Asked]
) -> Sequence[DiagnosisRun | Failed | None]:
    standing = await _locked(used, asked)
    outcomes = [standing.settle(one) for one in asked]
    if standing.changes:
        written = await each_of(used, END_AND_MOVE_HEAD, standing.changes)
        if len(written) != len(standing.changes):
            return [None] * len(asked)  # a decision that does not fit its record: each tells by itself
        await used.commit()
    return outcomes


async def _locked(used: PostgresConnection, asked: Sequence[_Asked]) -> _Standing:
    """What stands on record. Locked in the order in which all lock: sessions before runs, several by their ids."""
    keys = sorted({one.key for one in asked}, key=lambda key: key[1])
    places = [this_run(*key) for key in keys]
    sessions = [{"session_id": session_id} for session_id in sorted({session_id for session_id, _ in keys})]
    heads = await each_of(used, LOCK_CHAIN, sessions)
    runs = await each_of(used, LOCK, places)
    entries: dict[RunKey, list[Row]] = {key: [] for key in keys}
    for row in await each_of(used, ENTRIES, places):
        entries[_key(row)].append(row)
    return _Standing(
        {row["session_id"]: ChainHead(row["count"], row["digest"]) for row in heads},
        {_key(row): row for row in runs},
        entries,
    )


@define
class _Standing:
    """What stands on record of some runs, and what is to be written of them, as each decision leaves it."""

    heads: dict[str, ChainHead]
    runs: Mapping[RunKey, Row]
    entries: Mapping[RunKey, Sequence[Row]]
    changes: list[Row] = field(factory=list, init=False)
    _ended: dict[RunKey, DiagnosisRun] = field(factory=dict, init=False)

    def settle(self, one: _Asked) -> DiagnosisRun | Failed | None:
        """Take a decision; ``None`` if it has to be carried out alone. Nothing is left of one that raises."""
        try:
            return self._settle(one)
        except Exception as fault:
            return Failed(fault)

    def _settle(self, one: _Asked) -> DiagnosisRun | None:
        key, (session_id, _) = one.key, one.key
        if key not in self.runs or session_id not in self.heads:
            raise RunNotFound(*key)
        run = self._ended.get(key) or from_row(DiagnosisRun, self.runs[key])
        end = one.decide(OnRecord(run, *entries_in(self.entries[key]), self.heads[session_id]))
        if end is None:
            return run
        if end.case is not None:
            return None
        self.changes.append(end_values(end.run, end.seal, end.expires_at))
        self.heads[session_id] = end.seal.head
        self._ended[key] = end.stored
        return end.stored


def _key(row: Row) -> RunKey:
    return row["session_id"], row["run_id"]
