"""What a baseline holds: each incident of a suite, what its run stated, and what that took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from attrs import field, frozen

from casenotes.core.errors import CasenotesError
from casenotes.core.text import Json, JsonObject

FORMAT = 1
"""The version of the file's form."""


class InvalidBaseline(CasenotesError):
    """A baseline or an expectations file cannot be read or compared; the message names the field."""


@frozen
class Judged:
    """A fact, or a decoy, with whether the answer stated it."""

    text: str
    terms: tuple[str, ...]
    stated: bool

    def as_json(self) -> JsonObject:
        return {"text": self.text, "terms": list(self.terms), "stated": self.stated}


@frozen
class Measures:
    """What can be counted of a run that has ended. ``rules`` is the rule evaluation: id -> whether it holds.

    ``cited``: tool calls that the answer cites. ``unsupported``: citations of calls that were not made. ``statements``:
    sentences and items of the answer that claim something; ``uncited``: those among them without a citation.
    """

    degraded: bool = False
    citations_valid: bool = False
    cited: int = 0
    unsupported: int = 0
    statements: int = 0
    uncited: int = 0
    rules: Mapping[str, bool] = field(factory=dict)
    steps: int = 0
    tools: int = 0
    failed_tools: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    answer_chars: int = 0
    duration_ms: int = 0

    def as_json(self) -> JsonObject:
        return {
            "degraded": self.degraded,
            "citations": {
                "valid": self.citations_valid,
                "cited": self.cited,
                "unsupported": self.unsupported,
            },
            "statements": {"all": self.statements, "uncited": self.uncited},
            "rules": dict(self.rules),
            "steps": self.steps,
            "tools": {"all": self.tools, "failed": self.failed_tools},
            "tokens": {"input": self.input_tokens, "output": self.output_tokens},
            "answerChars": self.answer_chars,
            "durationMs": self.duration_ms,
        }


@frozen
class IncidentResult:
    """One incident and its run. ``evidence`` is what there was to look at: part of the pack -> digest.

    ``error`` is why the run failed, ``None`` when it succeeded. Everything but ``session_id``, ``run_id``,
    ``started_at`` and the duration is the same each time, with a deterministic diagnostician.
    """

    id: str
    folder: str
    question: str
    flow: str
    evidence: Mapping[str, str]
    facts: tuple[Judged, ...]
    decoys: tuple[Judged, ...]
    measures: Measures
    error: str | None = None
    session_id: str = ""
    run_id: str = ""
    started_at: str = ""

    @property
    def stated(self) -> int:
        """How many facts were stated."""
        return sum(fact.stated for fact in self.facts)

    @property
    def missed(self) -> tuple[str, ...]:
        """The facts that were not."""
        return tuple(fact.text for fact in self.facts if not fact.stated)

    def as_json(self) -> JsonObject:
        return {
            "id": self.id,
            "folder": self.folder,
            "question": self.question,
            "flow": self.flow,
            "evidence": dict(sorted(self.evidence.items())),
            "facts": [fact.as_json() for fact in self.facts],
            "decoys": [decoy.as_json() for decoy in self.decoys],
            "error": self.error,
            **self.measures.as_json(),
            "sessionId": self.session_id,
            "runId": self.run_id,
            "startedAt": self.started_at,
        }


@frozen
class Unreadable:
    """A folder of the suite that is no incident pack, and why."""

    folder: str
    reason: str


Settings: TypeAlias = Mapping[str, Json]


@frozen
class BaselineReport:
    """A run of a suite. ``settings`` are those that bear on the answers; no secret is among them."""

    version: str
    created_at: str
    settings: Settings
    incidents: tuple[IncidentResult, ...]
    unreadable: tuple[Unreadable, ...] = ()

    @property
    def by_id(self) -> dict[str, IncidentResult]:
        return {one.id: one for one in self.incidents}

    @property
    def is_whole(self) -> bool:
        """Whether every folder could be read and every run succeeded."""
        return not self.unreadable and all(one.error is None for one in self.incidents)

    def as_json(self) -> JsonObject:
        return {
            "format": FORMAT,
            "casenotes": self.version,
            "createdAt": self.created_at,
            "settings": dict(self.settings),
            "incidents": [one.as_json() for one in in_order(self.incidents)],
            "unreadable": [
                {"folder": one.folder, "reason": one.reason}
                for one in sorted(self.unreadable, key=lambda one: one.folder)
            ],
        }


def in_order(incidents: Iterable[IncidentResult]) -> list[IncidentResult]:
    """The incidents by id."""
    return sorted(incidents, key=lambda one: one.id)
