"""A historical trace reads the same before its rows are placed, from the old tables, and after, from its run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeAlias, TypeVar

import pytest
from alembic import command
from attrs import evolve
from support.historical import OldDatabase

from casenotes.adapters import migration, postgres, sqlite
from casenotes.adapters.migration import scripts
from casenotes.core.errors import SessionNotFound
from casenotes.core.model import AgentStep, Feedback, ToolInvocation
from casenotes.core.rules import compatibility_run_id
from casenotes.core.service.reading import Reading
from casenotes.core.text import Json
from casenotes.core.views import RunTrace
from casenotes.ports.ledger import Ledger

SESSIONS = ("checkout-slow", "Checkout-Slow", " checkout-slow ", "unfinished", "failed", "bare", "iso-times")
NOW = datetime(2026, 1, 1, tzinfo=UTC)

Told: TypeAlias = tuple[
    str | None, str | None, list[AgentStep], list[ToolInvocation], Feedback | None, Json, datetime, int
]
T = TypeVar("T")


def with_ledger(database: OldDatabase, work: Callable[[Ledger], Awaitable[T]]) -> T:
    async def opened() -> T:
        adapter = sqlite if database.dialect == "sqlite" else postgres
        ledger = adapter.open_ledger(database.url)
        try:
            await ledger.check()
            return await work(ledger)
        finally:
            await ledger.close()

    return asyncio.run(opened())


def only_schema(database: OldDatabase) -> None:
    """Bring the schema to head, and leave the rows waiting as a process does that is killed then."""
    asyncio.run(migration.upgrade(database.url, "0001"))
    database.run(lambda connection: command.upgrade(scripts.configuration(connection), "head"))


async def told(ledger: Ledger, session_id: str) -> Told:
    """What a reader is told of a session, but for what names a run."""
    trace: RunTrace = await Reading(ledger, lambda: NOW).trace(session_id)
    async with ledger.view() as view:
        old = await view.history.get(session_id)
    question = trace.run.query if trace.run else (old.query if old else None) or ""
    steps = [evolve(step, run_id="") for step in trace.agent_steps]
    tools = [evolve(tool, run_id="", result_size=None) for tool in trace.tool_invocations]
    feedback = None if trace.feedback is None else evolve(trace.feedback, updated_at=None)
    session = trace.session
    pairs = session.message_pair_count if trace.answer else 0
    return question, trace.answer, steps, tools, feedback, trace.self_evaluation, session.created_at, pairs


@pytest.fixture
def waiting(historical: OldDatabase) -> OldDatabase:
    """At head, with all rows waiting."""
    only_schema(historical)
    return historical


def test_historical_traces_read_the_same_before_and_after_they_are_placed(waiting: OldDatabase) -> None:
    async def all_told(ledger: Ledger) -> list[Told]:
        return [await told(ledger, session_id) for session_id in SESSIONS]

    before = with_ledger(waiting, all_told)
    assert asyncio.run(migration.status(waiting.url)).waiting.sessions == 11
    asyncio.run(migration.upgrade(waiting.url))
    after = with_ledger(waiting, all_told)

    assert after == before
    question, answer, steps, tools, feedback, evaluation, *_ = after[0]
    assert (question, answer) == ("Why is checkout slow?", "The pool is exhausted.")
    assert [(step.sequence, step.id) for step in steps] == [(1, 2), (2, 4), (3, 5), (4, 1), (5, 3)]
    assert [(tool.sequence, tool.id, tool.step_sequence) for tool in tools] == [
        (1, 2, 1),
        (2, 1, 2),
        (3, 3, None),
        (4, 4, None),
    ]
    assert feedback == Feedback("useful", "that was it", None)
    assert evaluation == {"score": 0.75, "checks": ["évidence"]}


def test_a_session_that_waits_has_no_run_and_one_that_is_placed_has_one(waiting: OldDatabase) -> None:
    async def runs(ledger: Ledger) -> list[str]:
        reading = Reading(ledger, lambda: NOW)
        assert ((await reading.trace("checkout-slow")).run is None) is (not migrated)
        return [run.run_id for run in await reading.runs("checkout-slow")]

    migrated = False
    with pytest.raises(SessionNotFound):
        with_ledger(waiting, runs)
    asyncio.run(migration.upgrade(waiting.url))
    migrated = True
    assert with_ledger(waiting, runs) == [compatibility_run_id("checkout-slow")]
