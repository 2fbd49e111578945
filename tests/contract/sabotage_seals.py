"""Ledgers that keep the chain of digests or the tombstones wrongly, each in one way that a real one might."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from attrs import evolve
from contract.sabotage import BrokenLedger, Overlay

from casenotes.core.model import DiagnosisRun, Feedback
from casenotes.core.seal import ChainHead, RunSeal
from casenotes.core.views import Erasure, Tombstone
from casenotes.ports.ledger import LedgerView, UnitOfWork


class LeavesTheChainWhereItWas(BrokenLedger):
    def in_work(self, work: UnitOfWork) -> object:
        async def lock_chain(session_id: str) -> ChainHead:
            return ChainHead()

        async def end(run: DiagnosisRun, seal: RunSeal, *, expires_at: datetime | None) -> None:
            head = await work.sessions.lock_chain(run.session_id)
            await work.runs.end(run, evolve(seal, position=head.count + 1), expires_at=expires_at)

        sessions = Overlay(work.sessions, lock_chain=lock_chain)
        return Overlay(work, sessions=sessions, runs=Overlay(work.runs, end=end))


class TakesASealFromAnywhere(BrokenLedger):
    def in_work(self, work: UnitOfWork) -> object:
        async def end(run: DiagnosisRun, seal: RunSeal, *, expires_at: datetime | None) -> None:
            head = await work.sessions.lock_chain(run.session_id)
            await work.runs.end(run, evolve(seal, position=head.count + 1), expires_at=expires_at)

        return Overlay(work, runs=Overlay(work.runs, end=end))


class SharesOneChainAmongSessions(BrokenLedger):
    def __init__(self) -> None:
        super().__init__()
        self.heads: list[ChainHead] = [ChainHead()]

    def in_work(self, work: UnitOfWork) -> object:
        async def lock_chain(session_id: str) -> ChainHead:
            return self.heads[-1]

        async def end(run: DiagnosisRun, seal: RunSeal, *, expires_at: datetime | None) -> None:
            head = await work.sessions.lock_chain(run.session_id)
            await work.runs.end(run, evolve(seal, position=head.count + 1), expires_at=expires_at)
            self.heads.append(seal.head)

        sessions = Overlay(work.sessions, lock_chain=lock_chain)
        return Overlay(work, sessions=sessions, runs=Overlay(work.runs, end=end))


class LocksTheRunAndNotItsChain(BrokenLedger):
    """The head is that of a moment before."""

    def in_work(self, work: UnitOfWork) -> object:
        async def lock_to_end(session_id: str, run_id: str) -> tuple[DiagnosisRun, ChainHead] | None:
            locked = await work.runs.lock_to_end(session_id, run_id)
            return None if locked is None else (locked[0], ChainHead(max(locked[1].count - 1, 0), None))

        return Overlay(work, runs=Overlay(work.runs, lock_to_end=lock_to_end))


class EndsARunWithoutItsSession(BrokenLedger):
    def in_work(self, work: UnitOfWork) -> object:
        async def lock_to_end(session_id: str, run_id: str) -> tuple[DiagnosisRun, ChainHead] | None:
            run = await work.runs.lock(session_id, run_id)
            return None if run is None else (run, await work.sessions.lock_chain(session_id))

        return Overlay(work, runs=Overlay(work.runs, lock_to_end=lock_to_end))


class ForgetsTombstones(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def tombstones(session_id: str) -> Sequence[Tombstone]:
            return ()

        return Overlay(view, sessions=Overlay(view.sessions, tombstones=tombstones))


class KeepsTheLastTombstoneOnly(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def tombstones(session_id: str) -> Sequence[Tombstone]:
            return (await view.sessions.tombstones(session_id))[-1:]

        return Overlay(view, sessions=Overlay(view.sessions, tombstones=tombstones))


class ErasesWhatIsNotIdle(BrokenLedger):
    def in_work(self, work: UnitOfWork) -> object:
        async def erase(
            session_id: str, *, at: datetime, idle_since: datetime | None = None
        ) -> Erasure | None:
            return await work.erase(session_id, at=at)

        return Overlay(work, erase=erase)


class CallsARunningSessionIdle(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def idle(*, since: datetime, limit: int) -> Sequence[str]:
            page = await view.sessions.page(query=None, before=None, limit=limit)
            return [one.session.session_id for one in page if one.session.last_active_at < since]

        return Overlay(view, sessions=Overlay(view.sessions, idle=idle))


class LetsFeedbackChangeTheDigest(BrokenLedger):
    def __init__(self) -> None:
        super().__init__()
        self.rated: set[str] = set()

    def in_view(self, view: LedgerView) -> object:
        async def get(session_id: str, run_id: str) -> DiagnosisRun | None:
            run = await view.runs.get(session_id, run_id)
            return evolve(run, digest="0" * 64) if run is not None and run_id in self.rated else run

        return Overlay(view, runs=Overlay(view.runs, get=get))

    def in_work(self, work: UnitOfWork) -> object:
        async def set_feedback(session_id: str, run_id: str, feedback: Feedback) -> None:
            await work.runs.set_feedback(session_id, run_id, feedback)
            self.rated.add(run_id)

        return Overlay(work, runs=Overlay(work.runs, set_feedback=set_feedback))
