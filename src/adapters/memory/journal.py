"""Steps and tool calls in memory."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from casenotes.adapters.memory.state import Draft, Snapshot
from casenotes.adapters.rows import Row, from_row, to_row
from casenotes.core.model import AgentStep, ToolInvocation


@frozen
class JournalReader:
    """``casenotes.ports.ledger.JournalView``."""

    _snapshot: Snapshot

    async def steps(self, session_id: str, run_id: str) -> Sequence[AgentStep]:
        rows = self._snapshot.state.steps.get((session_id, run_id), ())
        return [from_row(AgentStep, row) for row in rows]

    async def tools(self, session_id: str, run_id: str) -> Sequence[ToolInvocation]:
        rows = self._snapshot.state.tools.get((session_id, run_id), ())
        return [from_row(ToolInvocation, row) for row in rows]

    async def entries(
        self, session_id: str, run_id: str
    ) -> tuple[Sequence[AgentStep], Sequence[ToolInvocation]]:
        return await self.steps(session_id, run_id), await self.tools(session_id, run_id)


@frozen
class JournalWriter(JournalReader):
    """``casenotes.ports.ledger.Journal``."""

    _snapshot: Draft

    async def add_step(self, step: AgentStep) -> None:
        row = to_row(step)
        self._snapshot.running(step.session_id, step.run_id)
        steps, place = self._snapshot.state.steps, (step.session_id, step.run_id)
        rows = _with(steps.get(place, ()), row)
        row["id"] = next(self._snapshot.ids.steps)
        self._snapshot.replace(steps={**steps, place: rows})

    async def add_tool(self, tool: ToolInvocation) -> None:
        row = to_row(tool)
        self._snapshot.running(tool.session_id, tool.run_id)
        tools, place = self._snapshot.state.tools, (tool.session_id, tool.run_id)
        rows = _with(tools.get(place, ()), row)
        row["id"] = next(self._snapshot.ids.tools)
        self._snapshot.replace(tools={**tools, place: rows})


def _with(rows: tuple[Row, ...], row: Row) -> tuple[Row, ...]:
    """The rows with one more, by sequence."""
    sequence = row["sequence"]
    if any(other["sequence"] == sequence for other in rows):
        raise ValueError(f"the run has a row with sequence {sequence} already")
    return tuple(sorted((*rows, row), key=lambda one: one["sequence"]))
