"""The product as it is used: its own ledgers, migrated by its own migrations, through its use cases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from attrs import frozen

from bench import work
from bench.measuring import Spoilt
from casenotes.adapters import postgres, sqlite
from casenotes.adapters.migration import upgrade
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.core.model import DiagnosisRun
from casenotes.core.service.reading import Reading
from casenotes.core.service.recording import Recorder, Recording
from casenotes.core.text import json_text
from casenotes.core.words import AgentFlow
from casenotes.entrypoints.ambient import new_id, utc_now


class Unobserved:
    """A ``RunObserver`` that tells nobody."""

    def started(self, run: DiagnosisRun) -> None: ...

    def ended(self, run: DiagnosisRun) -> None: ...

    def faulted(self, session_id: str, run_id: str | None, what: str, fault: BaseException) -> None:
        raise fault


@frozen
class Product:
    """The use cases that are measured, over one ledger."""

    ledger: SqlLedger
    recorder: Recorder
    reading: Reading

    async def record(self, number: int) -> None:
        """The unit of work."""
        await self.recorded(number)

    async def recorded(self, number: int) -> DiagnosisRun:
        recording = await self.recorder.start(work.session_id(number), work.question(number), AgentFlow.CHAT)
        assert isinstance(recording, Recording)
        for k in range(1, work.STEPS + 1):
            await recording.step(
                work.AGENT,
                model=work.MODEL,
                output=work.text(number + k),
                input_tokens=work.INPUT_TOKENS,
                output_tokens=work.OUTPUT_TOKENS,
                duration_ms=work.STEP_MS,
            )
            await recording.tool(
                work.TOOL,
                work.ARGUMENTS,
                work.text(number + k + 1),
                step_sequence=recording.step_count,
                duration_ms=work.TOOL_MS,
            )
        return await recording.succeed(work.answer(number))

    async def trace(self, number: int) -> None:
        """The trace of a session's latest run."""
        trace = await self.reading.trace(work.session_id(number))
        if (len(trace.agent_steps), len(trace.tool_invocations)) != (work.STEPS, work.TOOLS):
            raise Spoilt("the product read another run than was recorded")

    async def fill(self) -> str:
        """Record a run in every session; gives the self-evaluation of one, for the floor to write the same."""
        ended = [await self.recorded(number) for number in range(work.SESSIONS)]
        return json_text(ended[0].self_evaluation)


@asynccontextmanager
async def on_postgres(url: str) -> AsyncIterator[Product]:
    """The product over this database, which is migrated first."""
    await upgrade(url)
    async with _over(postgres.open_ledger(url)) as product:
        yield product


@asynccontextmanager
async def on_sqlite(file: Path) -> AsyncIterator[Product]:
    """The product over this file, which is made."""
    url = f"sqlite:///{file}"
    await upgrade(url)
    async with _over(sqlite.open_ledger(url)) as product:
        yield product


@asynccontextmanager
async def _over(ledger: SqlLedger) -> AsyncIterator[Product]:
    lease, ttl = timedelta(seconds=30), timedelta(days=1)
    recorder = Recorder(ledger, utc_now, new_id, Unobserved(), new_id(), lease, ttl)
    try:
        yield Product(ledger, recorder, Reading(ledger, utc_now))
    finally:
        await ledger.close()
