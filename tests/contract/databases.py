"""What the SQL adapters' contract tests share: a database that migrations made, and rows of the old system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.ext.asyncio import create_async_engine

from casenotes.adapters.rows import to_row
from casenotes.adapters.sql.tables import agent_step, diagnosis_session, tool_invocation
from casenotes.core.model import AgentStep, HistoricalSession, ToolInvocation
from casenotes.ports.ledger import Ledger


class HistoryInSql:
    """Puts historical rows into the database at ``self.url``, which the fixture ``open_ledger`` sets."""

    url: str

    async def seed_history(
        self,
        ledger: Ledger,
        session: HistoricalSession,
        steps: Sequence[AgentStep] = (),
        tools: Sequence[ToolInvocation] = (),
    ) -> None:
        engine = create_async_engine(self.url)
        try:
            async with engine.begin() as connection:
                await connection.execute(diagnosis_session.insert(), to_row(session))
                for step in steps:
                    await connection.execute(agent_step.insert(), unplaced(step, step.sequence))
                for tool in tools:
                    await connection.execute(tool_invocation.insert(), unplaced(tool, tool.step_sequence))
        finally:
            await engine.dispose()


def unplaced(row: AgentStep | ToolInvocation, step_number: int | None) -> dict[str, Any]:
    """The row as the old system wrote it: it knows a step number, and no run."""
    return to_row(row) | {"step_number": step_number, "run_id": None, "sequence": None}
