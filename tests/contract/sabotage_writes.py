"""Ledgers that write wrongly, each in one way that a real one might."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import cast

from attrs import evolve
from contract.sabotage import BrokenLedger, Overlay

from casenotes.core.errors import InvalidTransition
from casenotes.core.model import (
    AgentStep,
    Case,
    ChatSession,
    DiagnosisRun,
    IdempotencyKey,
    RunKey,
    ToolInvocation,
)
from casenotes.core.seal import RunSeal
from casenotes.core.views import Erasure
from casenotes.ports.ledger import Ledger, LedgerView, UnitOfWork

EVERYTHING = 1000


class CommitsOnError(BrokenLedger):
    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        async with self.sound.work() as work:
            try:
                yield work
            except Exception:
                await work.commit()
                raise


class CommitsUnasked(BrokenLedger):
    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        async with self.sound.work() as work:
            yield work
            await work.commit()


class KeepsWhatItWasGiven(BrokenLedger):
    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, list[ToolInvocation]] = {}

    def in_view(self, view: LedgerView) -> object:
        async def tools(session_id: str, run_id: str) -> Sequence[ToolInvocation]:
            return self.given.get(run_id, [])

        return Overlay(view, journal=Overlay(view.journal, tools=tools))

    def in_work(self, work: UnitOfWork) -> object:
        async def add_tool(tool: ToolInvocation) -> None:
            await work.journal.add_tool(tool)
            self.given.setdefault(tool.run_id, []).append(tool)

        return Overlay(work, journal=Overlay(work.journal, add_tool=add_tool))


class DoublesACase(BrokenLedger):
    def __init__(self) -> None:
        super().__init__()
        self.doubles: list[Case] = []

    def in_view(self, view: LedgerView) -> object:
        async def page(*, query: str | None, before: int | None, limit: int) -> Sequence[Case]:
            return [*self.doubles, *await view.cases.page(query=query, before=before, limit=limit)]

        return Overlay(view, cases=Overlay(view.cases, page=page))

    def in_work(self, work: UnitOfWork) -> object:
        async def put(case: Case) -> Case:
            again = await work.cases.of_run(case.diagnosis_id) is not None
            stored = await work.cases.put(case)
            if again:
                self.doubles.append(evolve(stored, id=EVERYTHING + len(self.doubles)))
            return stored

        return Overlay(work, cases=Overlay(work.cases, put=put))


class ReusesIdsAfterErase(BrokenLedger):
    def __init__(self) -> None:
        super().__init__()
        self.living: dict[str, list[int]] = {}

    def in_work(self, work: UnitOfWork) -> object:
        async def add(run: DiagnosisRun) -> DiagnosisRun:
            number = max((n for numbers in self.living.values() for n in numbers), default=0) + 1
            self.living.setdefault(run.session_id, []).append(number)
            return evolve(await work.runs.add(run), id=number)

        async def erase(
            session_id: str, *, at: datetime, idle_since: datetime | None = None
        ) -> Erasure | None:
            self.living.pop(session_id, None)
            return await work.erase(session_id, at=at, idle_since=idle_since)

        return Overlay(work, runs=Overlay(work.runs, add=add), erase=erase)


class ErasesByPrefix(BrokenLedger):
    def in_work(self, work: UnitOfWork) -> object:
        async def erase(
            session_id: str, *, at: datetime, idle_since: datetime | None = None
        ) -> Erasure | None:
            for other in await work.sessions.page(query=None, before=None, limit=EVERYTHING):
                if other.session.session_id.startswith(f"{session_id}-"):
                    await work.erase(other.session.session_id, at=at)
            return await work.erase(session_id, at=at, idle_since=idle_since)

        return Overlay(work, erase=erase)


class EndsARunTwice(BrokenLedger):
    def in_work(self, work: UnitOfWork) -> object:
        async def end(run: DiagnosisRun, seal: RunSeal, *, expires_at: datetime | None) -> None:
            with suppress(InvalidTransition):
                await work.runs.end(run, seal, expires_at=expires_at)

        return Overlay(work, runs=Overlay(work.runs, end=end))


class TakesStepsAfterTheEnd(BrokenLedger):
    def in_work(self, work: UnitOfWork) -> object:
        async def add_step(step: AgentStep) -> None:
            with suppress(InvalidTransition):
                await work.journal.add_step(step)

        return Overlay(work, journal=Overlay(work.journal, add_step=add_step))


class GivesAKeyToTwo(BrokenLedger):
    def in_work(self, work: UnitOfWork) -> object:
        async def claim(key: IdempotencyKey) -> IdempotencyKey | None:
            holder = await work.keys.claim(key)
            return None if holder and holder.run_id < key.run_id else holder

        return Overlay(work, keys=Overlay(work.keys, claim=claim))


class ViewThatWrites(BrokenLedger):
    @asynccontextmanager
    async def view(self) -> AsyncIterator[LedgerView]:
        async with self.sound.work() as work:
            yield work
            await work.commit()


class LowersTheActivityOfASession(BrokenLedger):
    """What is given replaces what is there."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, ChatSession] = {}

    def in_view(self, view: LedgerView) -> object:
        async def get(session_id: str) -> ChatSession | None:
            return self.given.get(session_id) or await view.sessions.get(session_id)

        return Overlay(view, sessions=Overlay(view.sessions, get=get))

    def in_work(self, work: UnitOfWork) -> object:
        async def use(session: ChatSession) -> None:
            await work.sessions.use(session)
            self.given[session.session_id] = session

        return Overlay(work, sessions=Overlay(work.sessions, use=use))


class LosesTurnsAtOnce(BrokenLedger):
    """Each writes the count that it read before it waited for its turn."""

    waiting = 0
    lost = 0

    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        self.waiting += 1
        try:
            await asyncio.sleep(0)
            async with super().work() as work:
                yield work
        finally:
            self.waiting -= 1

    def in_view(self, view: LedgerView) -> object:
        async def get(session_id: str) -> ChatSession | None:
            session = await view.sessions.get(session_id)
            if session is None:
                return None
            return evolve(session, message_pair_count=session.message_pair_count - self.lost)

        return Overlay(view, sessions=Overlay(view.sessions, get=get))

    def in_work(self, work: UnitOfWork) -> object:
        async def end(run: DiagnosisRun, seal: RunSeal, *, expires_at: datetime | None) -> None:
            await work.runs.end(run, seal, expires_at=expires_at)
            self.lost += self.waiting > 1

        return Overlay(work, runs=Overlay(work.runs, end=end))


class SaysItRenewedEverybodysLease(BrokenLedger):
    def in_work(self, work: UnitOfWork) -> object:
        async def renew(runs: Collection[RunKey], *, owner: str, until: datetime) -> frozenset[RunKey]:
            await work.runs.renew(runs, owner=owner, until=until)
            return frozenset(runs)

        return Overlay(work, runs=Overlay(work.runs, renew=renew))


class LocksNothing(BrokenLedger):
    """Each call is a transaction of its own, whatever was locked by the call before it."""

    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        async def commit() -> None:
            pass

        alone = {name: EachCallAlone(self.sound, name) for name in ("sessions", "runs", "cases")}
        yield cast(UnitOfWork, Overlay(self.sound, commit=commit, **alone))


class EachCallAlone:
    """A repository whose every call opens and commits a unit of work."""

    def __init__(self, ledger: Ledger, repository: str) -> None:
        self._ledger = ledger
        self._repository = repository

    def __getattr__(self, method: str) -> Callable[..., Awaitable[object]]:
        async def call(*args: object, **kwargs: object) -> object:
            async with self._ledger.work() as work:
                result = await getattr(getattr(work, self._repository), method)(*args, **kwargs)
                await work.commit()
            return result

        return call
