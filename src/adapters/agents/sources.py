"""Many sources as one."""

from __future__ import annotations

from collections.abc import Sequence

from casenotes.ports.agent import EvidenceSource, Lookup, Observation, ObservationStatus


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
        offered: list[Lookup] = []
        for source in self._sources:
            offered += [lookup for lookup in await source.offer() if lookup not in offered]
        return tuple(offered)

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
