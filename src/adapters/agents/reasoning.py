"""Who chooses what to look at and who writes: the rules alone, or a model with the rules to fall back on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from attrs import frozen

from casenotes.adapters.agents.focus import Focus
from casenotes.adapters.agents.investigating import Investigation
from casenotes.adapters.agents.looking import Call
from casenotes.core.text import JsonObject
from casenotes.ports.agent import AgentEvent, Chunk, Lookup, StepTaken


@frozen
class Choice:
    """Lookups to make, and the steps that were taken to choose them."""

    lookups: list[Lookup]
    steps: tuple[StepTaken, ...] = ()


@frozen
class Draft:
    """What is to be written: what it is about, the calls it may rest on, and how the rules would word it."""

    about: str
    calls: tuple[Call, ...]
    lines: Sequence[str]


class Reasoner(Protocol):
    """Chooses and writes in one run; made anew for each.

    Never raises for what a model does. Once a model has failed, ``failed`` says why, in words that may be shown,
    and stays; from then on ``choose`` gives what the rules propose and ``write`` gives nothing.
    """

    @property
    def failed(self) -> str | None:
        """Why the model had to be given up; ``None`` while all is well."""
        ...

    async def choose(
        self, investigation: Investigation, proposed: list[Lookup], room: int, focus: Focus | None = None
    ) -> Choice:
        """At most ``room`` lookups to make next, given what the rules propose; none when enough was seen."""
        ...

    def can_write(self, investigation: Investigation, found: bool) -> bool:
        """Whether an answer can be written from what was seen; ``found`` is what the rules hold of it."""
        ...

    def write(self, draft: Draft) -> AsyncIterator[AgentEvent]:
        """Write it: the pieces, and the step. Where ``failed`` is set afterwards, the rules must write it."""
        ...

    def notice(self) -> str:
        """What has to be said, once, before the rules take over from the model; else nothing."""
        ...

    @property
    def found_of_itself(self) -> JsonObject | None:
        """What it has to say of its own work, for the run's self-evaluation."""
        ...


@frozen
class Rules:
    """The ``Reasoner`` that has no model."""

    agent_name: str = "composer"
    failed: None = None
    found_of_itself: None = None

    async def choose(
        self, investigation: Investigation, proposed: list[Lookup], room: int, focus: Focus | None = None
    ) -> Choice:
        """What the rules propose."""
        return Choice(proposed[:room])

    def can_write(self, investigation: Investigation, found: bool) -> bool:
        """What the rules hold of it."""
        return found

    async def write(self, draft: Draft) -> AsyncIterator[AgentEvent]:
        """The words of the rules."""
        calls = f"{len(draft.calls)} call{'s' * (len(draft.calls) != 1)}"
        yield StepTaken(self.agent_name, "compose", input=calls, output=draft.lines[0].strip())
        for line in draft.lines:
            yield Chunk(line)

    def notice(self) -> str:
        """Nothing: nothing was taken over."""
        return ""


RULES = Rules()


async def written(reasoner: Reasoner, draft: Draft, rules: Rules = RULES) -> AsyncIterator[AgentEvent]:
    """The draft written by the reasoner or, where its model fails, by the rules, which say so first."""
    async for event in reasoner.write(draft):
        yield event
    if reasoner.failed is not None:
        async for event in taken_over(reasoner, draft, rules):
            yield event


async def taken_over(reasoner: Reasoner, draft: Draft, rules: Rules) -> AsyncIterator[AgentEvent]:
    """The draft as the rules word it, after what has to be said first."""
    notice = reasoner.notice()
    if notice:
        yield Chunk(notice)
    async for event in rules.write(draft):
        yield event
