"""The ways of a ledger that share commits, over units of work of their own: for ledgers that stand before another."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from casenotes.core.model import AgentStep, ToolInvocation
from casenotes.core.views import StoredTrace
from casenotes.ports.ledger import Body, LedgerView, UnitOfWork

T = TypeVar("T")


class ThroughWork:
    """``transact`` and ``record`` by ``work``: whatever that does, they do."""

    def work(self) -> AbstractAsyncContextManager[UnitOfWork]:
        raise NotImplementedError

    async def transact(self, body: Body[T]) -> T:
        async with self.work() as work:
            result = await body(work)
            await work.commit()
        return result

    def view(self) -> AbstractAsyncContextManager[LedgerView]:
        raise NotImplementedError

    async def trace(self, session_id: str, run_id: str | None = None) -> StoredTrace:
        async with self.view() as view:
            session = await view.sessions.get(session_id)
            run = await (
                view.runs.latest(session_id) if run_id is None else view.runs.get(session_id, run_id)
            )
            if run is None:
                return StoredTrace(session, None)
            steps, tools = await view.journal.entries(session_id, run.run_id)
        return StoredTrace(session, run, tuple(steps), tuple(tools))

    async def record(self, entry: AgentStep | ToolInvocation) -> None:
        async def add(work: UnitOfWork) -> None:
            await (
                work.journal.add_step(entry) if isinstance(entry, AgentStep) else work.journal.add_tool(entry)
            )

        await self.transact(add)
