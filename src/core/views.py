"""What is read: summaries, a trace, a receipt. Views hold no live reference into a store."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from attrs import frozen

from casenotes.core.model import (
    AgentStep,
    ChatSession,
    DiagnosisRun,
    Feedback,
    HistoricalSession,
    ToolInvocation,
)
from casenotes.core.text import Json
from casenotes.core.words import SessionStatus


class SummarySource(StrEnum):
    """Where a session's summary was read from, best first."""

    CHAT_SESSION = "chat_session"
    DIAGNOSIS_RUN = "diagnosis_run"
    DIAGNOSIS_SESSION = "diagnosis_session"


@frozen
class SessionSummary:
    """A session in short. ``message_pair_count`` counts all answered turns."""

    session_id: str
    status: SessionStatus
    message_pair_count: int
    created_at: datetime
    last_active_at: datetime
    expires_at: datetime | None
    source: SummarySource


@frozen
class SessionOverview:
    """A session as the list of sessions shows it."""

    session: ChatSession
    run_count: int
    last_run_id: str | None
    last_query: str | None


@frozen
class RunSummary:
    """A run as the list of a session's runs shows it: no step, no tool call, and a preview of its answer."""

    run_id: str
    session_id: str
    query: str
    status: str
    agent_flow: str
    answer_preview: str | None
    step_count: int
    tool_call_count: int
    created_at: datetime
    updated_at: datetime


@frozen
class RunTrace:
    """All that is on record of one run, as of one moment.

    ``run`` is ``None`` when the session has no run yet; then ``answer``, ``feedback`` and ``self_evaluation``
    come from the historical row, if there is one. Steps and tool calls are in recorded order.
    """

    session: SessionSummary
    run: DiagnosisRun | None
    agent_steps: tuple[AgentStep, ...]
    tool_invocations: tuple[ToolInvocation, ...]
    self_evaluation: Json
    answer: str | None
    feedback: Feedback | None

    @property
    def session_id(self) -> str:
        return self.session.session_id

    @property
    def run_id(self) -> str | None:
        """The run that was resolved, or ``None``."""
        return None if self.run is None else self.run.run_id


@frozen
class StoredTrace:
    """What is stored of a session's run, and the session's own row; ``run`` is ``None`` when there is no such run."""

    session: ChatSession | None
    run: DiagnosisRun | None
    agent_steps: tuple[AgentStep, ...] = ()
    tool_invocations: tuple[ToolInvocation, ...] = ()


@frozen
class FeedbackReceipt:
    """What became of a feedback: the run it was bound to (``None``: the historical row) and the case of that run."""

    session_id: str
    run_id: str | None
    fallback_to_latest_run: bool
    feedback: str
    case_id: int | None


@frozen
class Erasure:
    """How many rows were removed with a session."""

    session_id: str
    runs: int
    agent_steps: int
    tool_invocations: int
    cases: int


@frozen
class Pruning:
    """How many sessions were removed, and how many rows with them."""

    sessions: int = 0
    runs: int = 0
    agent_steps: int = 0
    tool_invocations: int = 0
    cases: int = 0

    def plus(self, erasure: Erasure) -> Pruning:
        """With one session more."""
        return Pruning(
            self.sessions + 1,
            self.runs + erasure.runs,
            self.agent_steps + erasure.agent_steps,
            self.tool_invocations + erasure.tool_invocations,
            self.cases + erasure.cases,
        )


@frozen
class Tombstone:
    """What is remembered of an erased session: no word of it, and enough to tell that it was erased, not lost.

    ``session_digest`` is ``core.seal.session_digest`` of its id; ``ended_run_count`` and ``last_run_digest`` are
    where its chain of runs stood.
    """

    session_digest: str
    runs: int
    agent_steps: int
    tool_invocations: int
    cases: int
    ended_run_count: int
    last_run_digest: str | None
    erased_at: datetime


@frozen
class HistoricalTrace:
    """A historical session with the rows that could not be placed in a run."""

    session: HistoricalSession
    agent_steps: tuple[AgentStep, ...]
    tool_invocations: tuple[ToolInvocation, ...]
