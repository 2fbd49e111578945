"""What one run has looked at: each lookup once, numbered as the record numbers it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TypeAlias

from attrs import evolve, frozen

from casenotes.adapters.agents.findings.extract import Reading, read
from casenotes.adapters.agents.findings.model import Finding, code
from casenotes.adapters.agents.findings.names import owner_of
from casenotes.core.text import Json, bounded, json_text
from casenotes.core.words import StepStatus
from casenotes.ports.agent import (
    ALERTS_TOOL,
    EvidenceSource,
    Lookup,
    Observation,
    ObservationStatus,
    ToolCalled,
)

Monotonic: TypeAlias = Callable[[], float]
"""Gives seconds that never step back."""

AT_ONCE = 4
"""Lookups of one run that are under way at the same time, at the most."""

PATIENCE = 20.0
"""Seconds that one lookup may take. A source that is silent for longer has failed, and the answer says so."""


@frozen
class Call:
    """A lookup that was made: its number in the run, what came back, and what was read out of it."""

    number: int
    lookup: Lookup
    observation: Observation
    reading: Reading

    @property
    def cite(self) -> str:
        """How an answer cites it."""
        return f"[T{self.number}]"

    @property
    def failed(self) -> str | None:
        """Why it showed nothing though it might have: the words to show, or ``None`` when it did not fail."""
        if self.observation.status is ObservationStatus.ERROR:
            return self.observation.error_message or "it failed without a reason"
        return self.reading.failure

    @property
    def empty(self) -> bool:
        """Whether there was nothing to see."""
        return self.observation.status is ObservationStatus.NO_DATA or self.reading.empty


@frozen
class Cited:
    """A finding with the calls that bear it out, and the other subjects of which the same was found."""

    finding: Finding
    calls: tuple[int, ...]
    others: tuple[str, ...] = ()

    @property
    def statement(self) -> str:
        """The finding as a sentence of an answer, without its full stop, with its citations."""
        text = self.finding.text
        if self.others:
            shown = ", ".join(code(other) for other in self.others[:3])
            more = f" and {len(self.others) - 3} more" if len(self.others) > 3 else ""
            text += f" (the same for {shown}{more})"
        return f"{text} {self.citation}"

    @property
    def citation(self) -> str:
        """Its citations, at most four of them."""
        return " ".join(f"[T{number}]" for number in self.calls[:4])


class Looking:
    """The lookups of one run. Never makes one twice."""

    def __init__(self, source: EvidenceSource, clock: Monotonic, patience: float = PATIENCE) -> None:
        self._source = source
        self._clock = clock
        self._patience = patience
        self._calls: dict[str, Call] = {}
        self._found: tuple[int, tuple[Cited, ...]] = (0, ())

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls so far, in order."""
        return tuple(self._calls.values())

    @property
    def found(self) -> tuple[Cited, ...]:
        """The findings of the calls so far, each once."""
        if self._found[0] != len(self._calls):
            self._found = (len(self._calls), tuple(cited_findings(self.calls)))
        return self._found[1]

    def made(self, lookup: Lookup) -> Call | None:
        """The call of this lookup, if it was made."""
        return self._calls.get(_key(lookup))

    async def look(self, lookup: Lookup) -> ToolCalled:
        """Make a lookup that was not made before, and give the event that tells of it."""
        return self.take(lookup, *await self._observe(lookup))

    async def look_at_all(self, lookups: Sequence[Lookup]) -> AsyncGenerator[ToolCalled, None]:
        """Make those of the lookups that were not made before, several at once; the events come in their order.

        What is not done when the iterator is closed, or fails, is stopped.
        """
        places = asyncio.Semaphore(AT_ONCE)

        async def in_turn(lookup: Lookup) -> tuple[Observation, int]:
            async with places:
                return await self._observe(lookup)

        wanted = {_key(lookup): lookup for lookup in lookups if self.made(lookup) is None}
        tasks = [(lookup, asyncio.create_task(in_turn(lookup))) for lookup in wanted.values()]
        try:
            for lookup, task in tasks:
                yield self.take(lookup, *await task)
        finally:
            for _, task in tasks:
                task.cancel()
            await asyncio.gather(*(task for _, task in tasks), return_exceptions=True)

    async def _observe(self, lookup: Lookup) -> tuple[Observation, int]:
        started = self._clock()
        try:
            async with asyncio.timeout(self._patience) as limit:
                observation = await self._source.look(lookup)
        except TimeoutError:
            if not limit.expired():
                raise
            words = f"no answer within {self._patience:g} s"
            observation = Observation(ObservationStatus.ERROR, error_message=words)
        return observation, round((self._clock() - started) * 1000)

    def take(self, lookup: Lookup, observation: Observation, duration_ms: int = 0) -> ToolCalled:
        """Count an observation that is at hand as a call, as alerts are that a request brings along."""
        key = _key(lookup)
        if key in self._calls:
            raise ValueError(f"looked up twice: {key}")
        self._calls[key] = Call(len(self._calls) + 1, lookup, observation, _reading(lookup, observation))
        failed = observation.status is ObservationStatus.ERROR
        return ToolCalled(
            tool_name=lookup.tool,
            arguments=lookup.arguments,
            result=observation.result,
            status=StepStatus.FAILED if failed else StepStatus.SUCCESS,
            error_message=observation.error_message,
            duration_ms=duration_ms,
        )


def _reading(lookup: Lookup, observation: Observation) -> Reading:
    if observation.status is not ObservationStatus.SUCCESS or lookup.tool == ALERTS_TOOL:
        return Reading()
    return read(lookup, _as_recorded(observation.result))


def _as_recorded(result: Json) -> Json:
    """The part of a text that the record keeps: what is read from it can be checked there."""
    return bounded(result).value if isinstance(result, str) else result


def cited_findings(calls: Sequence[Call]) -> list[Cited]:
    """The findings of the calls, each once: the same words of pods of one owner are one finding."""
    alike: dict[tuple[str, str], Cited] = {}
    for call in calls:
        for finding in call.reading.findings:
            owner = owner_of(finding.subject)
            words = finding.text.replace(code(finding.subject), "§") if finding.subject else finding.text
            known = alike.get((owner, words))
            if known is None:
                alike[owner, words] = Cited(finding, (call.number,))
                continue
            others = known.others
            if finding.subject != known.finding.subject and finding.subject not in others:
                others = (*others, finding.subject)
            numbers = known.calls if call.number in known.calls else (*known.calls, call.number)
            alike[owner, words] = Cited(known.finding, numbers, others)
    return _without_shorter(list(alike.values()))


def _without_shorter(found: list[Cited]) -> list[Cited]:
    """The findings without those that another one says in full: their calls join it."""
    kept: list[Cited] = []
    for cited in sorted(found, key=lambda each: -len(each.finding.text)):
        text = cited.finding.text
        longer = next((other for other in kept if other.finding.text.startswith(text)), None)
        if longer is None:
            kept.append(cited)
        else:
            calls = tuple(sorted({*longer.calls, *cited.calls}))
            kept[kept.index(longer)] = evolve(longer, calls=calls)
    order = {cited.finding.text: at for at, cited in enumerate(found)}
    return sorted(kept, key=lambda each: order[each.finding.text])


def _key(lookup: Lookup) -> str:
    return lookup.tool + json_text(dict(sorted(lookup.arguments.items())))


def describe(lookup: Lookup) -> str:
    """A lookup in one line, for steps and answers."""
    arguments = ", ".join(f"{key}={_value(value)}" for key, value in lookup.arguments.items())
    return f"{lookup.tool}({arguments})"


def _value(value: Json) -> str:
    return value if isinstance(value, str) else json_text(value)
