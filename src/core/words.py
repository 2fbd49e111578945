"""The words that a record's fields may hold, as they are stored and as they stand on the wire."""

from __future__ import annotations

from enum import StrEnum


class RunStatus(StrEnum):
    """Where a run stands. ``RUNNING`` once, then one of the others, for good."""

    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"


class StepStatus(StrEnum):
    """How a step or a tool call ended."""

    SUCCESS = "SUCCESS"
    FAILED = "FAILED"


class SessionStatus(StrEnum):
    """Whether a conversation's context is still remembered."""

    ACTIVE = "ACTIVE"
    EXPIRED = "EXPIRED"


class AgentFlow(StrEnum):
    """How a run was answered. A migrated run may hold another, older word."""

    CHAT = "CHAT"
    STATE_GRAPH = "STATE_GRAPH"
    AI_OPS = "AI_OPS"
    LEGACY = "LEGACY"


class Rating(StrEnum):
    """What people say of a run."""

    USEFUL = "useful"
    NOT_USEFUL = "not_useful"


class CaseStatus(StrEnum):
    """Whether a case is in the library, or was taken back."""

    ACTIVE = "ACTIVE"
    WITHDRAWN = "WITHDRAWN"


class CaseSource(StrEnum):
    """Where a case came from: useful feedback, a person, or the old system."""

    AUTO = "AUTO"
    MANUAL = "MANUAL"
    HISTORICAL = "HISTORICAL"
