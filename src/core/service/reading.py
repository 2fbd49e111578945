"""Reading: traces, runs, sessions, cases. Nothing here can write: a ``LedgerView`` has no way to."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from casenotes.core import rules
from casenotes.core.errors import InvalidInput, RunNotFound, SessionNotFound
from casenotes.core.model import Case, DiagnosisRun, Feedback
from casenotes.core.views import (
    HistoricalTrace,
    RunSummary,
    RunTrace,
    SessionOverview,
    SessionSummary,
)
from casenotes.ports.ambient import Clock
from casenotes.ports.ledger import Ledger

DEFAULT_LIMIT = 100
MAX_LIMIT = 500


@frozen
class Reading:
    """The read-only use cases; each reads one snapshot."""

    ledger: Ledger
    clock: Clock

    async def trace(self, session_id: str, run_id: str | None = None) -> RunTrace:
        """The trace of exactly this run of the session, or of its latest.

        Raises ``SessionNotFound`` for a session of which nothing is known, ``RunNotFound`` for a run that is not
        the session's. A session without a run gives a trace without one.
        """
        stored = await self.ledger.trace(session_id, run_id)
        if stored.run is None:
            return await self._without_run(session_id, run_id)
        run = rules.owned(stored.run, session_id, run_id or stored.run.run_id)
        return RunTrace(
            session=rules.session_summary(session_id, stored.session, run, None, self.clock()),
            run=run,
            agent_steps=stored.agent_steps,
            tool_invocations=stored.tool_invocations,
            self_evaluation=run.self_evaluation,
            answer=run.answer,
            feedback=_feedback_of(run),
        )

    async def _without_run(self, session_id: str, run_id: str | None) -> RunTrace:
        async with self.ledger.view() as view:
            latest = await view.runs.latest(session_id)
            if run_id is None and latest is None:
                chat = await view.sessions.get(session_id)
                historical = await view.history.trace(session_id)
                old = None if historical is None else historical.session
                summary = rules.session_summary(session_id, chat, None, old, self.clock())
                return _without_run(summary, historical)
            known = latest or await view.sessions.get(session_id) or await view.history.get(session_id)
        if run_id is None:  # the session's first run began in between
            return await self.trace(session_id)
        raise SessionNotFound(session_id) if known is None else RunNotFound(session_id, run_id)

    async def runs(
        self, session_id: str, *, limit: int = DEFAULT_LIMIT, before: str | None = None
    ) -> Sequence[RunSummary]:
        """The session's runs, newest first.

        Raises ``SessionNotFound`` when neither a chat session nor a run has this id, ``RunNotFound`` when
        ``before`` is not a run of the session, ``InvalidInput`` for a limit outside 1 to 500.
        """
        check_limit(limit)
        async with self.ledger.view() as view:
            if await view.sessions.get(session_id) is None and await view.runs.latest(session_id) is None:
                raise SessionNotFound(session_id)
            return await view.runs.page(session_id, before=before, limit=limit)

    async def session(self, session_id: str) -> SessionSummary:
        """The session in short. Raises ``SessionNotFound``."""
        async with self.ledger.view() as view:
            chat = await view.sessions.get(session_id)
            run = None if chat else await view.runs.latest(session_id)
            old = None if chat or run else await view.history.get(session_id)
            return rules.session_summary(session_id, chat, run, old, self.clock())

    async def sessions(
        self, *, query: str | None = None, limit: int = DEFAULT_LIMIT, before: str | None = None
    ) -> Sequence[SessionOverview]:
        """Sessions, latest active first; ``query`` looks in ids and questions. Raises as ``runs`` does."""
        check_limit(limit)
        now = self.clock()
        async with self.ledger.view() as view:
            page = await view.sessions.page(query=query or None, before=before, limit=limit)
        return [
            evolve(
                one,
                session=evolve(one.session, status=rules.session_status(one.session.expires_at, now)),
            )
            for one in page
        ]

    async def cases(
        self, *, query: str | None = None, limit: int = DEFAULT_LIMIT, before: int | None = None
    ) -> Sequence[Case]:
        """Active cases, newest first; ``query`` looks in questions and answers."""
        check_limit(limit)
        async with self.ledger.view() as view:
            return await view.cases.page(query=query or None, before=before, limit=limit)


def check_limit(limit: int) -> None:
    """Raise ``InvalidInput`` for a page size outside 1 to 500."""
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be from 1 to {MAX_LIMIT}")


def _feedback_of(run: DiagnosisRun) -> Feedback | None:
    return None if run.feedback is None else Feedback(run.feedback, run.feedback_comment, run.feedback_at)


def _without_run(summary: SessionSummary, historical: HistoricalTrace | None) -> RunTrace:
    if historical is None:
        return RunTrace(summary, None, (), (), None, None, None)
    old = historical.session
    return RunTrace(
        session=summary,
        run=None,
        agent_steps=historical.agent_steps,
        tool_invocations=historical.tool_invocations,
        self_evaluation=old.self_evaluation,
        answer=old.answer,
        feedback=None
        if old.feedback is None
        else Feedback(old.feedback, old.feedback_comment, old.updated_at),
    )
