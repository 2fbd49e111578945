"""Ledgers that end runs wrongly, each in one way that one which ends many together might."""

from __future__ import annotations

import asyncio
from itertools import count

from attrs import evolve
from contract.sabotage import BrokenLedger

from casenotes.core.ending import Decide, OnRecord, RunEnd
from casenotes.core.model import DiagnosisRun
from casenotes.core.seal import ChainHead, seal
from casenotes.ports.contract.stage import chat_session


class EndsWithoutTheCase(BrokenLedger):
    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        def without_case(found: OnRecord) -> RunEnd | None:
            end = decide(found)
            return None if end is None else evolve(end, case=None)

        return await super().end(session_id, run_id, without_case)


class TellsNoEntries(BrokenLedger):
    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        return await super().end(session_id, run_id, lambda found: decide(evolve(found, steps=(), tools=())))


class TellsTheChainAsItWasBefore(BrokenLedger):
    """The place in the chain is right, the digest before it is not."""

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        return await super().end(
            session_id, run_id, lambda found: decide(evolve(found, head=ChainHead(found.head.count)))
        )


class SealsWhatItRefuses(BrokenLedger):
    """A decision that does not continue the chain is put right instead."""

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        def put_right(found: OnRecord) -> RunEnd | None:
            end = decide(found)
            return end and evolve(end, seal=seal(end.run, found.steps, found.tools, found.head))

        return await super().end(session_id, run_id, put_right)


class TouchesTheSessionOfARunItLeaves(BrokenLedger):
    def __init__(self) -> None:
        super().__init__()
        self.seconds = count(60)

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        async with self.work() as work:
            await work.sessions.use(chat_session(session_id, next(self.seconds)))
            await work.commit()
        return await super().end(session_id, run_id, decide)


class FailsAllThatEndWithARefusedOne(BrokenLedger):
    def __init__(self) -> None:
        super().__init__()
        self.refusal: Exception | None = None

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        try:
            return await super().end(session_id, run_id, decide)
        except Exception as refusal:
            self.refusal = refusal
            raise
