"""What a diagnosis is made by, and what it looks at.

A ``Diagnostician`` turns a question into events; the service records each event as it comes, streams it and
ends the run. Chat, complex chat and AIOps share this one way. An ``EvidenceSource`` is what it looks at.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias, runtime_checkable

from attrs import field, frozen

from casenotes.core.evaluation import ALERTS_TOOL as ALERTS_TOOL
from casenotes.core.evaluation import RUNBOOK_TOOL as RUNBOOK_TOOL
from casenotes.core.model import MessagePair
from casenotes.core.orchestration import GraphEvent
from casenotes.core.text import Json, JsonObject
from casenotes.core.words import AgentFlow, StepStatus


@frozen
class Enquiry:
    """What a diagnostician is asked.

    ``conversation`` holds the earlier turns, oldest first. ``alerts`` are those the caller gave (AI_OPS only);
    ``None`` means that the diagnostician asks its alert source.
    """

    session_id: str
    run_id: str
    question: str
    flow: AgentFlow
    conversation: tuple[MessagePair, ...] = ()
    alerts: tuple[JsonObject, ...] | None = None


@frozen
class StepTaken:
    """The agent took a step. Durations are in milliseconds, tokens as the model counted them."""

    agent_name: str
    step_type: str = "model"
    model: str | None = None
    input: str | None = None
    output: str | None = None
    status: StepStatus = StepStatus.SUCCESS
    error_message: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    duration_ms: int | None = None


@frozen
class ToolCalled:
    """The agent called a tool and has its result.

    The n-th ``ToolCalled`` of a run is recorded with sequence n, and cited as ``[T<n>]``. It belongs to the
    latest ``StepTaken`` before it; to none when no step was taken yet.
    """

    tool_name: str
    arguments: Mapping[str, object] = field(factory=dict)
    result: object = None
    status: StepStatus = StepStatus.SUCCESS
    error_message: str | None = None
    duration_ms: int | None = None


@frozen
class GraphMoved:
    """The graph of a complex chat moved. Only for ``AgentFlow.STATE_GRAPH``."""

    event: GraphEvent


@frozen
class Progress:
    """A word about what is being done, for the one who waits. It is streamed and not stored."""

    text: str


@frozen
class Chunk:
    """A piece of the answer. All pieces, joined, are the answer; line ends belong to the pieces."""

    text: str


@frozen
class Answered:
    """The last event: the answer is complete.

    ``answer`` is for a diagnostician that yielded no ``Chunk``; else it is ``None``. ``degraded`` says that the
    answer was made without something it should have had. ``self_evaluation`` is what the diagnostician found
    of its own work, by name.
    """

    answer: str | None = None
    degraded: bool = False
    self_evaluation: JsonObject | None = None


AgentEvent: TypeAlias = StepTaken | ToolCalled | GraphMoved | Progress | Chunk | Answered


class Diagnostician(Protocol):
    """Answers an enquiry."""

    def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        """Yield each event when it has happened, and ``Answered`` last.

        The consumer records an event before it asks for the next, so that what was not recorded has not
        been built upon. One diagnostician serves many enquiries at once and keeps nothing of one for another.
        Cancellation may come at any await; the iterator is closed then. Who takes longer than some seconds to go is
        cancelled again: it may have missed the word. An exception fails the run: a model
        that fails is no exception but an answer with ``degraded``.
        """
        ...


class ObservationStatus(StrEnum):
    """What became of a look: it showed something, there was nothing to see, or it failed."""

    SUCCESS = "success"
    NO_DATA = "no_data"
    ERROR = "error"


@frozen
class Lookup:
    """One question to an evidence source: a tool's name and its arguments."""

    tool: str
    arguments: JsonObject = field(factory=dict)


@frozen
class Observation:
    """What a source answered. ``error_message`` is safe to show, and set when the status is ``error``.

    ``left_out`` says in words what the source itself left out of ``result`` to bound it, so that an answer can
    say so.
    """

    status: ObservationStatus
    result: Json = None
    error_message: str | None = None
    left_out: str | None = None


class EvidenceSource(Protocol):
    """A place to look: recorded observations, metrics, logs, alerts, runbooks."""

    @property
    def tools(self) -> frozenset[str]:
        """The names of the tools that this source answers."""
        ...

    async def offer(self) -> Sequence[Lookup]:
        """The lookups that can be made here and may show something, in a stable order.

        A source with an open-ended language (a query API) offers the lookups it knows to be worth making.
        """
        ...

    async def look(self, lookup: Lookup) -> Observation:
        """Make a lookup. Never raises for what the source does or says: that is an ``error`` observation.

        The same lookup may be made at any time and by many at once. An unknown tool is an ``error``, a known
        tool that has nothing for these arguments is ``no_data``.
        """
        ...


@frozen
class About:
    """What a run is about, for a source that holds more than it could list: the question, and the alerts known."""

    question: str
    alerts: tuple[JsonObject, ...] = ()


@runtime_checkable
class OpenEnded(Protocol):
    """A source with an open-ended language may also be this: then it is told what the run is about."""

    async def offer_for(self, about: About) -> Sequence[Lookup]:
        """The lookups worth making for this, at most a few dozen, in a stable order; as ``offer`` otherwise.

        Never raises for what the source does or says: a source that cannot be reached offers a lookup that will
        say so.
        """
        ...


@runtime_checkable
class Closing(Protocol):
    """A source, or a diagnostician over sources, that holds connections may also be this."""

    async def close(self) -> None:
        """Let go of the connections; nothing is asked of it afterwards. May be called twice."""
        ...
