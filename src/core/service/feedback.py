"""Feedback: bound to a run, or to a historical row, in one transaction with the case that it makes."""

from __future__ import annotations

from attrs import frozen

from casenotes.core import rules
from casenotes.core.model import DiagnosisRun, Feedback
from casenotes.core.rules import BoundToHistory, BoundToRun, Unbound
from casenotes.core.views import FeedbackReceipt
from casenotes.ports.ambient import Clock
from casenotes.ports.ledger import Ledger, UnitOfWork


@frozen
class FeedbackDesk:
    """Takes feedback."""

    ledger: Ledger
    clock: Clock

    async def give(
        self, session_id: str, rating: str, *, run_id: str | None = None, comment: str | None = None
    ) -> FeedbackReceipt:
        """Bind a feedback; the run named in the receipt is the row that changed. The last word wins.

        Without ``run_id`` the session's latest run is taken, or its historical row when it has no run. Raises
        ``RunNotFound`` or ``SessionNotFound`` when there is nothing to bind to, ``InvalidInput`` for an unknown
        rating; nothing is written then.
        """
        given = rules.feedback(rating, comment, self.clock())
        async with self.ledger.work() as work:
            if run_id is None:
                candidate = await work.runs.lock_latest(session_id)
            else:
                candidate = await work.runs.lock(session_id, run_id)
            historical = await work.history.get(session_id) if candidate is None else None
            match rules.bind_feedback(session_id, run_id, candidate, historical):
                case Unbound(reason):
                    raise reason
                case BoundToHistory():
                    await work.history.set_feedback(session_id, given)
                    receipt = FeedbackReceipt(session_id, None, False, given.rating, None)
                case BoundToRun(run, fell_back):
                    case_id = await self._rate(work, run, given)
                    receipt = FeedbackReceipt(session_id, run.run_id, fell_back, given.rating, case_id)
            await work.commit()
        return receipt

    async def _rate(self, work: UnitOfWork, run: DiagnosisRun, given: Feedback) -> int | None:
        await work.runs.set_feedback(run.session_id, run.run_id, given)
        now = self.clock()
        case = rules.case_for(run.rated(given), now)
        if case is None:
            await work.cases.withdraw(run.run_id, at=now)
            return None
        return (await work.cases.put(case)).id
