"""What the machine found, each as a test of its own."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from support.service import Backend, Running

from casenotes.core.model import ChatSession, DiagnosisRun, Lease
from casenotes.core.words import AgentFlow

NOW = datetime(2026, 3, 1, tzinfo=UTC)
A_WHILE = 0.05
"""Seconds that the other is given to do what it must not."""


def test_a_run_that_starts_while_its_session_is_erased_is_not_left_without_one(
    backend: Backend,
) -> None:
    """The session that a start has ensured is there until the start is committed."""

    async def scenario(here: Running) -> None:
        ledger = here.service.ledger

        async def erase() -> None:
            async with ledger.work() as work:
                await work.erase("s-1", at=NOW)
                await work.commit()

        await here.seed_session("s-1")
        async with ledger.work() as work:
            await work.sessions.ensure(ChatSession("s-1", created_at=NOW, last_active_at=NOW))
            erasing = asyncio.create_task(erase())
            await asyncio.wait({erasing}, timeout=A_WHILE)
            await work.runs.add(
                DiagnosisRun.start("run-1", "s-1", "q", AgentFlow.CHAT, NOW, Lease("owner", NOW))
            )
            await work.commit()
        await erasing
        async with ledger.view() as view:
            session, run = await view.sessions.get("s-1"), await view.runs.latest("s-1")
        assert (session is None) == (run is None)

    backend.run(scenario)
