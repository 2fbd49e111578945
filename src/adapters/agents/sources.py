"""Many sources as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress

from casenotes.ports.agent import (
    About,
    Closing,
    EvidenceSource,
    Lookup,
    Observation,
    ObservationStatus,
    OpenEnded,
)

PATIENCE = 20.0
"""Seconds that the sources may take to say what they offer; what has not answered by then offers nothing."""


class Sources:
    """An ``EvidenceSource`` made of others. A lookup goes to the sources that answer its tool, in their order,
    until one has something to show; without one, the last word of them stands.
    """

    def __init__(self, sources: Sequence[EvidenceSource]) -> None:
        self._sources = tuple(sources)

    @property
    def tools(self) -> frozenset[str]:
        """Every tool that one of the sources answers."""
        return frozenset().union(*(source.tools for source in self._sources))

    async def offer(self) -> Sequence[Lookup]:
        """What the sources offer, in their order; what two of them offer, once."""
        return await _gathered(source.offer() for source in self._sources)

    async def offer_for(self, about: About) -> Sequence[Lookup]:
        """What the open-ended ones among the sources offer for this, in their order."""
        return await _gathered(
            source.offer_for(about) for source in self._sources if isinstance(source, OpenEnded)
        )

    async def close(self) -> None:
        """Close those of the sources that hold connections."""
        for source in self._sources:
            if isinstance(source, Closing):
                await source.close()

    async def look(self, lookup: Lookup) -> Observation:
        """The first success; without one a failure rather than "no data", since a failed look shows nothing."""
        answer = Observation(
            ObservationStatus.ERROR, error_message=f"no source answers the tool {lookup.tool}"
        )
        asked = False
        for source in self._sources:
            if lookup.tool not in source.tools:
                continue
            seen = await source.look(lookup)
            if seen.status is ObservationStatus.SUCCESS:
                return seen
            if not asked or answer.status is ObservationStatus.NO_DATA:
                answer, asked = seen, True
        return answer


async def _gathered(offers: Iterable[Awaitable[Sequence[Lookup]]]) -> tuple[Lookup, ...]:
    answers = await asyncio.gather(*(_in_time(offer) for offer in offers))
    found: list[Lookup] = []
    for offered in answers:
        found += [lookup for lookup in offered if lookup not in found]
    return tuple(found)


async def _in_time(offer: Awaitable[Sequence[Lookup]]) -> Sequence[Lookup]:
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            return await offer
    return ()
