"""Breaches: promises of the record that do not hold."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen

from casenotes.core.text import JsonObject


class BreachKind(StrEnum):
    """What is wrong."""

    UNREADABLE = "unreadable"
    """A row cannot be read as what it is."""
    COUNTS = "counts"
    """A run or session counts other than its rows."""
    SEQUENCE = "sequence"
    """A step or tool call of an answered run is missing in its row of numbers, or stands there twice."""
    ORPHAN = "orphan"
    """A step or tool call of a run that is not there, or a run of a session that is not."""
    FOREIGN = "foreign"
    """A step or tool call that names a run of another session."""
    LIFECYCLE = "lifecycle"
    """A run's status contradicts its times, answer or digest: it ended not at all, or more than once."""
    CASE = "case"
    """A case without its run, or that does not agree with its run and rating."""
    ALTERED = "altered"
    """A record is not as it was when its run ended."""
    REMOVED = "removed"
    """A record that was there when its run ended is gone."""
    ADDED = "added"
    """A record was not there when its run ended, or did not come by the way in which runs end."""
    CHAIN = "chain"
    """The session's chain of digests is broken at this place."""


@frozen
class Breach:
    """A promise that does not hold, and where: without a session, in the ledger as a whole.

    ``detail`` says it in words that hold nothing of what is stored.
    """

    kind: BreachKind
    session_id: str | None
    run_id: str | None
    detail: str

    def as_json(self) -> JsonObject:
        return {
            "kind": str(self.kind),
            "sessionId": self.session_id,
            "runId": self.run_id,
            "detail": self.detail,
        }


@frozen
class Fault:
    """A breach of a session that is being looked at."""

    kind: BreachKind
    run_id: str | None
    detail: str
