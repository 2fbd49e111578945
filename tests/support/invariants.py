"""What holds of a ledger after any fault: read from its database by plain SQL, past all that is ours, and verified."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeAlias

from attrs import frozen
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool
from support.fault_proxy import TASK
from support.postgres import until

from casenotes.core.breaches import Breach
from casenotes.core.words import AgentFlow, CaseStatus, Rating, RunStatus
from casenotes.entrypoints.bootstrap import open_ledger_at, verifying

Row: TypeAlias = Mapping[str, Any]

_TABLES = (
    "chat_session",
    "diagnosis_run",
    "agent_step",
    "tool_invocation",
    "case_library",
    "idempotency_key",
)
_IDLE = "select 1 from pg_stat_activity where datname = current_database() and state like 'idle in%'"


async def assert_sound(url: str) -> None:
    """The ledger is whole, nobody holds it open, and nothing is left at work in this event loop.

    Every run has ended: call it when the runs of dead processes have been ended by their leases.
    """
    assert list(faults_of(await _tables(url))) == []
    breaches = await _breaches(url)
    assert not breaches, breaches
    if url.startswith("sqlite"):
        _assert_file_is_free_and_whole(url)
    else:
        await until(url, _IDLE, 0)
    assert_nothing_at_work()


async def _breaches(url: str) -> Sequence[Breach]:
    """What ``casenotes verify`` finds."""
    ledger = await open_ledger_at(url, migrate_first=False)
    try:
        return (await verifying(ledger).all()).breaches
    finally:
        await ledger.close()


async def _tables(url: str) -> Mapping[str, Sequence[Row]]:
    engine = create_async_engine(url, poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            return {
                name: [
                    dict(row) for row in (await connection.execute(text(f"select * from {name}"))).mappings()
                ]
                for name in _TABLES
            }
    finally:
        await engine.dispose()


def assert_nothing_at_work() -> None:
    """No task is left but the one that asks, and those of the proxies."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    assert {task.get_name() for task in tasks} <= {TASK}, tasks


def faults_of(tables: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Everything that is wrong in the rows of a ledger, each in words that name the row."""
    runs = {run["run_id"]: run for run in tables["diagnosis_run"]}
    journal = _Journal.of(tables)
    for run in runs.values():
        for fault in (*_faults_of_end(run), *_faults_of_counts(run, journal)):
            yield f"run {run['run_id']}: {fault}"
    yield from journal.strays(runs)
    yield from _faults_of_cases(runs, tables["case_library"])
    yield from _faults_of_sessions(runs.values(), tables["chat_session"])
    for key in tables["idempotency_key"]:
        if key["run_id"] not in runs:
            yield f"key {key['key']} stands for no run"


def _faults_of_end(run: Row) -> Iterator[str]:
    if run["status"] not in (RunStatus.SUCCESS, RunStatus.FAILED):
        yield f"is {run['status']}"
        return
    succeeded = run["status"] == RunStatus.SUCCESS
    if succeeded is not (run["answer"] is not None) or succeeded is not (run["error_message"] is None):
        yield f"{run['status']} does not agree with its answer and error"
    if succeeded is not (run["self_evaluation"] is not None):
        yield f"{run['status']} does not agree with its evaluation"
    if run["lease_owner"] is not None or run["lease_expires_at"] is not None:
        yield "has ended and holds a lease"
    if run["finished_at"] is None or run["finished_at"] < run["created_at"]:
        yield "has no end, or one before its beginning"


@frozen
class _Journal:
    steps: Mapping[tuple[str, str], Sequence[Row]]
    tools: Mapping[tuple[str, str], Sequence[Row]]

    @classmethod
    def of(cls, tables: Mapping[str, Sequence[Row]]) -> _Journal:
        return cls(_by_run(tables["agent_step"]), _by_run(tables["tool_invocation"]))

    def strays(self, runs: Mapping[str, Row]) -> Iterator[str]:
        for key in self.steps.keys() | self.tools.keys():
            session_id, run_id = key
            if run_id not in runs or runs[run_id]["session_id"] != session_id:
                yield f"rows of {run_id} in {session_id} belong to no run"
        for written in (*self.steps.values(), *self.tools.values()):
            for row in written:
                if row["status"] is None or (row.get("agent_name") or row.get("tool_name")) is None:
                    yield f"row {row['sequence']} of {row['run_id']} is half written"


def _by_run(written: Sequence[Row]) -> Mapping[tuple[str, str], Sequence[Row]]:
    found = defaultdict[tuple[str, str], list[Row]](list)
    for row in written:
        if row["run_id"] is not None:  # else the old system's
            found[row["session_id"], row["run_id"]].append(row)
    return found


def _faults_of_counts(run: Row, journal: _Journal) -> Iterator[str]:
    key = (run["session_id"], run["run_id"])
    for written, count in ((journal.steps, "step_count"), (journal.tools, "tool_call_count")):
        sequences = sorted(row["sequence"] for row in written.get(key, ()))
        if sequences != list(range(1, run[count] + 1)):
            yield f"{count} is {run[count]}, its rows are {sequences}"


def _faults_of_cases(runs: Mapping[str, Row], cases: Sequence[Row]) -> Iterator[str]:
    automatic = [case for case in cases if case["source"] == "AUTO"]
    active = defaultdict[str, list[Row]](list)
    for case in automatic:
        if case["diagnosis_id"] not in runs:
            yield f"case {case['id']} is of no run"
        elif case["status"] == CaseStatus.ACTIVE:
            active[case["diagnosis_id"]].append(case)
    for run_id, run in runs.items():
        wanted = run["feedback"] == Rating.USEFUL and run["answer"] is not None
        found = [(case["query"], case["answer"], case["session_id"]) for case in active[run_id]]
        if found != ([(run["query"], run["answer"], run["session_id"])] if wanted else []):
            yield f"run {run_id}: its feedback is {run['feedback']}, and it has {len(found)} active cases, or another's"


def _faults_of_sessions(runs: Iterable[Row], sessions: Sequence[Row]) -> Iterator[str]:
    known = {session["session_id"]: session for session in sessions}
    turns = dict.fromkeys(known, 0)
    for run in runs:
        session = known.get(run["session_id"])
        if session is None:
            yield f"run {run['run_id']} has no session"
            continue
        turns[run["session_id"]] += (
            run["status"] == RunStatus.SUCCESS and run["agent_flow"] != AgentFlow.AI_OPS
        )
        if session["last_active_at"] < run["created_at"]:
            yield f"session {run['session_id']} was active last before its run {run['run_id']} began"
    for session_id, count in turns.items():
        if known[session_id]["message_pair_count"] != count:
            yield f"session {session_id} counts {known[session_id]['message_pair_count']} pairs, and has {count}"


def _assert_file_is_free_and_whole(url: str) -> None:
    with closing(sqlite3.connect(str(make_url(url).database), timeout=0, isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        file.execute("ROLLBACK")
