"""What every scene of the contract is played on: fixed times, small makers of records, and a runner.

Scenes are coroutines; pytest sees plain functions, so that no plugin is needed. A scene that waits for ever is a
failure, not a hang.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from attrs import evolve

from casenotes.core.model import Case, ChatSession, DiagnosisRun, Feedback, IdempotencyKey, Lease, RunMetrics
from casenotes.core.seal import seal
from casenotes.core.text import Json
from casenotes.core.words import AgentFlow
from casenotes.ports.ledger import Ledger, UnitOfWork

OpenLedger: TypeAlias = Callable[[], AbstractAsyncContextManager[Ledger]]
"""Opens the ledger under test, empty at first, and closes it at the end of the block."""

DEADLINE_SECONDS = 30
BEGINNING = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
NAIVE = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - naive on purpose: it must be refused

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


def play(scene: Awaitable[T]) -> T:
    """Run a scene to its end, or fail when the deadline passes."""

    async def within_deadline() -> T:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await scene

    return asyncio.run(within_deadline())


def asynchronous(
    test: Callable[P, Coroutine[Any, Any, None]],
) -> Callable[P, None]:
    """A coroutine as a test that pytest can run by itself."""

    def played(*args: P.args, **kwargs: P.kwargs) -> None:
        play(test(*args, **kwargs))

    return _presented(played, test, inspect.signature(test))


def on_fresh_ledger(
    test: Callable[Concatenate[S, Ledger, P], Coroutine[Any, Any, None]],
) -> Callable[Concatenate[S, OpenLedger, P], None]:
    """A coroutine over an empty ledger as a test over the fixture ``open_ledger``."""

    def played(self: S, open_ledger: OpenLedger, *args: P.args, **kwargs: P.kwargs) -> None:
        async def scene() -> None:
            async with open_ledger() as ledger:
                await test(self, ledger, *args, **kwargs)

        play(scene())

    itself, _, *others = inspect.signature(test).parameters.values()
    fixture = inspect.Parameter("open_ledger", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return _presented(played, test, inspect.Signature([itself, fixture, *others]))


def _presented(
    played: Callable[..., None], test: Callable[..., object], signature: inspect.Signature
) -> Callable[..., None]:
    # functools.wraps would set __wrapped__, and pytest would then ask for the coroutine's parameters.
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(played, name, getattr(test, name))
    played.__dict__["__signature__"] = signature
    return played


def at(seconds: float = 0) -> datetime:
    """A moment of the stage: so many seconds after its beginning."""
    return BEGINNING + timedelta(seconds=seconds)


@asynccontextmanager
async def committed(ledger: Ledger) -> AsyncIterator[UnitOfWork]:
    """A unit of work that commits when its block ends well."""
    async with ledger.work() as work:
        yield work
        await work.commit()


def chat_session(session_id: str = "s", seconds: float = 0) -> ChatSession:
    return ChatSession(session_id, created_at=at(seconds), last_active_at=at(seconds))


def started(
    run_id: str = "r",
    session_id: str = "s",
    *,
    query: str = "why is checkout slow",
    seconds: float = 0,
    owner: str = "alpha",
    lease_seconds: float = 30,
) -> DiagnosisRun:
    """A run as an executor starts it."""
    lease = Lease(owner, at(seconds + lease_seconds))
    return DiagnosisRun.start(run_id, session_id, query, AgentFlow.CHAT, at(seconds), lease)


def answered(run: DiagnosisRun, answer: str = "the pool is exhausted", seconds: float = 5) -> DiagnosisRun:
    return run.succeed(answer, at(seconds), RunMetrics(0, 0))


def case_of(
    run_id: str, *, query: str = "q", answer: str = "a", session_id: str = "s", seconds: float = 0
) -> Case:
    return Case(run_id, query, answer, created_at=at(seconds), updated_at=at(seconds), session_id=session_id)


def key_named(key: str, *, session_id: str = "s", run_id: str = "r", digest: str = "d") -> IdempotencyKey:
    return IdempotencyKey(key, digest, session_id, run_id, at())


def useful(comment: str | None = None, seconds: float = 10) -> Feedback:
    return Feedback("useful", comment, at(seconds))


async def add_sessions(ledger: Ledger, *session_ids: str, seconds: float = 0) -> None:
    async with committed(ledger) as work:
        for session_id in session_ids:
            await work.sessions.ensure(chat_session(session_id, seconds))


async def add_runs(ledger: Ledger, *runs: DiagnosisRun) -> list[DiagnosisRun]:
    """Store runs, in this order, each with its session; returns them as stored."""
    async with committed(ledger) as work:
        for run in runs:
            await work.sessions.ensure(chat_session(run.session_id))
        return [await work.runs.add(run) for run in runs]


async def add_run(ledger: Ledger, run: DiagnosisRun) -> DiagnosisRun:
    """Store one run with its session; returns it as stored."""
    stored = only(await add_runs(ledger, run))
    return stored


async def end(work: UnitOfWork, ended: DiagnosisRun, *, expires_at: datetime | None = None) -> DiagnosisRun:
    """Store how a run ended, sealed over its stored entries; returns it as stored."""
    key = (ended.session_id, ended.run_id)
    head = await work.sessions.lock_chain(ended.session_id)
    sealed = seal(ended, *await work.journal.entries(*key), head)
    await work.runs.end(ended, sealed, expires_at=expires_at)
    return evolve(ended, digest=sealed.digest)


async def end_run(ledger: Ledger, ended: DiagnosisRun) -> DiagnosisRun:
    async with committed(ledger) as work:
        return await end(work, ended)


async def put_cases(ledger: Ledger, *cases: Case) -> list[Case]:
    async with committed(ledger) as work:
        return [await work.cases.put(case) for case in cases]


async def read_run(ledger: Ledger, session_id: str, run_id: str) -> DiagnosisRun:
    """The stored run, which must be there."""
    async with ledger.view() as view:
        run = await view.runs.get(session_id, run_id)
    assert run is not None, f"run {run_id} of session {session_id} is not there"
    return run


async def read_session(ledger: Ledger, session_id: str) -> ChatSession:
    """The stored session, which must be there."""
    async with ledger.view() as view:
        session = await view.sessions.get(session_id)
    assert session is not None, f"session {session_id} is not there"
    return session


async def picture(ledger: Ledger, session_id: str = "s") -> tuple[object, ...]:
    """All that the port shows of a session: two equal pictures mean that nothing changed."""
    async with ledger.view() as view:
        runs = [
            (
                await view.runs.get(session_id, summary.run_id),
                tuple(await view.journal.steps(session_id, summary.run_id)),
                tuple(await view.journal.tools(session_id, summary.run_id)),
                await view.cases.of_run(summary.run_id),
            )
            for summary in await view.runs.page(session_id, before=None, limit=1000)
        ]
        return (
            await view.sessions.get(session_id),
            tuple(await view.sessions.page(query=session_id, before=None, limit=1000)),
            tuple(runs),
            tuple(await view.cases.page(query=None, before=None, limit=1000)),
            await view.history.get(session_id),
            await view.history.trace(session_id),
        )


async def holder_of(ledger: Ledger, key: str) -> IdempotencyKey | None:
    """Who holds a key's name: found by a claim that is not committed."""
    async with ledger.work() as work:
        return await work.keys.claim(key_named(key, run_id="nobody"))


def same_json(left: Json, right: Json) -> bool:
    """Equal in value and in type at every depth: to Python ``1 == 1.0 == True``, to JSON they are three values."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return left == right


def only(items: Iterable[T]) -> T:
    """The one item that there is."""
    found = list(items)
    assert len(found) == 1, f"expected one, found {len(found)}: {found}"
    return found[0]


async def all_at_once(scenes: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Play scenes together; the first error, if any, is raised when all have ended."""
    outcomes = await asyncio.gather(*scenes, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
