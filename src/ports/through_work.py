"""What a ledger may do in fewer round trips, done by its units of work and views alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from casenotes.core.ending import Decide, OnRecord
from casenotes.core.errors import RunNotFound
from casenotes.core.model import AgentStep, ChatSession, DiagnosisRun, ToolInvocation
from casenotes.core.views import StoredTrace
from casenotes.ports.ledger import Body, LedgerView, UnitOfWork

T = TypeVar("T")


def starting(session: ChatSession, run: DiagnosisRun) -> Body[DiagnosisRun]:
    """The body of ``Ledger.start``."""

    async def start(work: UnitOfWork) -> DiagnosisRun:
        await work.sessions.use(session)
        return await work.runs.add(run)

    return start


def recording(entry: AgentStep | ToolInvocation) -> Body[None]:
    """The body of ``Ledger.record``."""

    async def record(work: UnitOfWork) -> None:
        if isinstance(entry, AgentStep):
            await work.journal.add_step(entry)
        else:
            await work.journal.add_tool(entry)

    return record


def ending(session_id: str, run_id: str, decide: Decide) -> Body[DiagnosisRun]:
    """The body of ``Ledger.end``."""

    async def end(work: UnitOfWork) -> DiagnosisRun:
        locked = await work.runs.lock_to_end(session_id, run_id)
        if locked is None:
            raise RunNotFound(session_id, run_id)
        run, head = locked
        end = decide(OnRecord(run, *await work.journal.entries(session_id, run_id), head))
        if end is None:
            return run
        await work.runs.end(end.run, end.seal, expires_at=end.expires_at)
        if end.case is not None:
            await work.cases.put(end.case)
        return end.stored

    return end


class ThroughWork(ABC):
    """The part of a ``Ledger`` that follows from ``work`` and ``view``.

    For a store that has nothing to gain from sharing commits, and for a ledger that stands before another.
    """

    __slots__ = ()

    @abstractmethod
    def work(self) -> AbstractAsyncContextManager[UnitOfWork]:
        """As ``Ledger.work``."""

    @abstractmethod
    def view(self) -> AbstractAsyncContextManager[LedgerView]:
        """As ``Ledger.view``."""

    async def transact(self, body: Body[T]) -> T:
        """As ``Ledger.transact``; each body has a commit of its own."""
        async with self.work() as work:
            result = await body(work)
            await work.commit()
        return result

    async def start(self, session: ChatSession, run: DiagnosisRun) -> DiagnosisRun:
        """As ``Ledger.start``."""
        return await self.transact(starting(session, run))

    async def record(self, entry: AgentStep | ToolInvocation) -> None:
        """As ``Ledger.record``."""
        await self.transact(recording(entry))

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        """As ``Ledger.end``."""
        return await self.transact(ending(session_id, run_id, decide))

    async def has_run(self, session_id: str, run_id: str) -> bool:
        """As ``Ledger.has_run``."""
        async with self.view() as view:
            return await view.runs.get(session_id, run_id) is not None

    async def trace(self, session_id: str, run_id: str | None = None) -> StoredTrace:
        """As ``Ledger.trace``."""
        async with self.view() as view:
            session = await view.sessions.get(session_id)
            run = await (
                view.runs.latest(session_id) if run_id is None else view.runs.get(session_id, run_id)
            )
            if run is None:
                return StoredTrace(session, None)
            steps, tools = await view.journal.entries(session_id, run.run_id)
        return StoredTrace(session, run, tuple(steps), tuple(tools))
