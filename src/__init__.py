"""casenotes: the record of what a diagnosis agent did, run by run.

async with casenotes.open("sqlite+aiosqlite:///runs.db") as notes:
    async with notes.run("Why is checkout slow?") as run:
        async with run.step("planner", model="...") as step:
            step.output = "look at the logs first"
        await run.tool("logs.search", {"q": "timeout"}, result="312 hits")
        run.answer("Pool exhausted after deploy 481. [T1]")
    trace = await notes.trace(run.session_id)
"""

from __future__ import annotations

from casenotes.core.breaches import Breach, BreachKind
from casenotes.core.errors import (
    CasenotesError,
    ContextUnavailable,
    InvalidInput,
    InvalidSettings,
    InvalidTransition,
    LedgerUnavailable,
    NotFound,
    RunNotFound,
    SchemaOutOfDate,
    SessionNotFound,
    ShuttingDown,
    TooManyRunning,
)
from casenotes.core.model import AgentStep, Case, ChatSession, DiagnosisRun, Feedback, ToolInvocation
from casenotes.core.orchestration import Node, TerminationReason
from casenotes.core.service.verifying import Verification
from casenotes.core.views import (
    Erasure,
    FeedbackReceipt,
    Pruning,
    RunSummary,
    RunTrace,
    SessionOverview,
    SessionSummary,
    SummarySource,
)
from casenotes.core.words import (
    AgentFlow,
    CaseSource,
    CaseStatus,
    Rating,
    RunStatus,
    SessionStatus,
    StepStatus,
)
from casenotes.entrypoints.graph_moves import GraphMoves
from casenotes.entrypoints.library import Notes, open
from casenotes.entrypoints.run_block import Run, Step

__all__ = [
    "AgentFlow",
    "AgentStep",
    "Breach",
    "BreachKind",
    "Case",
    "CaseSource",
    "CaseStatus",
    "CasenotesError",
    "ChatSession",
    "ContextUnavailable",
    "DiagnosisRun",
    "Erasure",
    "Feedback",
    "FeedbackReceipt",
    "GraphMoves",
    "InvalidInput",
    "InvalidSettings",
    "InvalidTransition",
    "LedgerUnavailable",
    "Node",
    "NotFound",
    "Notes",
    "Pruning",
    "Rating",
    "Run",
    "RunNotFound",
    "RunStatus",
    "RunSummary",
    "RunTrace",
    "SchemaOutOfDate",
    "SessionNotFound",
    "SessionOverview",
    "SessionStatus",
    "SessionSummary",
    "ShuttingDown",
    "Step",
    "StepStatus",
    "SummarySource",
    "TerminationReason",
    "TooManyRunning",
    "ToolInvocation",
    "Verification",
    "open",
]
