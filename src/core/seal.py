"""Seals: what an ended run looked like, so that a later change of it, or its loss, can be told.

A run is sealed in the transaction that ends it. Its digest is SHA-256 over its canonical record: its own fields, the
digests of its steps and tool calls, and the digest of the run that ended before it in the same session. Feedback,
cases, ``updated_at`` and what a store assigns stand outside: they may change after the end.

The canonical form is JSON with sorted keys, no white space, no escapes but those that JSON demands, in UTF-8; a
time is ISO 8601 in UTC with six digits of fraction and ``Z``. It is written down in ``docs/tamper-evidence.md``, so
that anybody can check a digest without this program. It never changes: another form takes another version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Final, TypeAlias, TypeVar

from attrs import frozen

from casenotes.core.model import AgentStep, DiagnosisRun, ToolInvocation

VERSION: Final = 1

_RUN: Final = (
    "run_id",
    "session_id",
    "query",
    "status",
    "agent_flow",
    "created_at",
    "finished_at",
    "answer",
    "error_message",
    "self_evaluation",
    "orchestration_trace",
    "step_count",
    "tool_call_count",
    "degraded",
)
_STEP: Final = (
    "run_id",
    "session_id",
    "sequence",
    "agent_name",
    "step_type",
    "status",
    "created_at",
    "model",
    "input",
    "output",
    "error_message",
    "input_tokens",
    "output_tokens",
    "duration_ms",
)
_TOOL: Final = (
    "run_id",
    "session_id",
    "sequence",
    "tool_name",
    "arguments",
    "result",
    "status",
    "created_at",
    "step_sequence",
    "result_truncated",
    "result_size",
    "error_message",
    "duration_ms",
)

Entry = TypeVar("Entry", AgentStep, ToolInvocation)

EntryDigests: TypeAlias = Mapping[int, str]
"""Sequence -> digest, of a run's steps or of its tool calls."""


@frozen
class ChainHead:
    """Where the chain of a session's ended runs stands: how many there are, and the digest of the last."""

    count: int = 0
    digest: str | None = None


@frozen
class RunSeal:
    """An ended run's place in its session's chain (from 1), and the digests that hold it there, in lower-case hex."""

    position: int
    previous: str | None
    steps: EntryDigests
    tools: EntryDigests
    digest: str

    @property
    def head(self) -> ChainHead:
        """The chain with this run as its last."""
        return ChainHead(self.position, self.digest)


def seal(
    run: DiagnosisRun, steps: Sequence[AgentStep], tools: Sequence[ToolInvocation], head: ChainHead
) -> RunSeal:
    """The seal of a run that ends now, with these rows, after the runs of ``head``."""
    step_digests = {step.sequence: step_digest(step) for step in steps}
    tool_digests = {tool.sequence: tool_digest(tool) for tool in tools}
    position, previous = head.count + 1, head.digest
    digest = run_digest(run, position, previous, step_digests, tool_digests)
    return RunSeal(position, previous, step_digests, tool_digests, digest)


def run_digest(
    run: DiagnosisRun, position: int, previous: str | None, steps: EntryDigests, tools: EntryDigests
) -> str:
    """The digest of a run in this place of its chain, over entries with these digests."""
    record = {
        "version": VERSION,
        "position": position,
        "previous": previous,
        "run": _fields(run, _RUN),
        "steps": sorted(steps.items()),
        "tools": sorted(tools.items()),
    }
    return _digest(record)


def step_digest(step: AgentStep) -> str:
    """The digest of a step."""
    return _digest(_fields(step, _STEP))


def tool_digest(tool: ToolInvocation) -> str:
    """The digest of a tool call."""
    return _digest(_fields(tool, _TOOL))


def session_digest(session_id: str) -> str:
    """The name under which an erased session is remembered: SHA-256 of its id in UTF-8."""
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()


@frozen
class Differences:
    """Entries whose sequences are in the seal and whose rows differ from it, or are on one side only."""

    altered: tuple[int, ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]


def differences(
    sealed: EntryDigests, entries: Sequence[Entry], digest_of: Callable[[Entry], str]
) -> Differences:
    """How stored entries differ from those that were sealed. An entry whose sequence repeats counts as added."""
    found: dict[int, str] = {}
    repeated: list[int] = []
    for entry in entries:
        if entry.sequence in found:
            repeated.append(entry.sequence)
        found.setdefault(entry.sequence, digest_of(entry))
    return Differences(
        altered=tuple(sorted(n for n in sealed.keys() & found.keys() if sealed[n] != found[n])),
        removed=tuple(sorted(sealed.keys() - found.keys())),
        added=tuple(sorted([*(found.keys() - sealed.keys()), *repeated])),
    )


def _fields(record: object, names: tuple[str, ...]) -> dict[str, object]:
    return {
        name: _moment(value) if isinstance(value, datetime) else value
        for name, value in zip(names, _getters[names](record), strict=True)
    }


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


_getters: Final[Mapping[tuple[str, ...], Callable[[object], tuple[object, ...]]]] = {
    names: attrgetter(*names) for names in (_RUN, _STEP, _TOOL)
}
_canonical: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def _digest(record: Mapping[str, object]) -> str:
    return hashlib.sha256(_canonical(record).encode("utf-8", "surrogatepass")).hexdigest()
