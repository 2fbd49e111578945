"""A source without some of its tools: another source answers those."""

from __future__ import annotations

from collections.abc import Sequence

from casenotes.adapters.evidence.recorded import unknown_tool
from casenotes.ports.agent import EvidenceSource, Lookup, Observation


class Without:
    """What a source offers and answers but for these tools."""

    def __init__(self, source: EvidenceSource, tools: frozenset[str]) -> None:
        self._source = source
        self._hidden = tools

    @property
    def tools(self) -> frozenset[str]:
        """The tools that are left."""
        return self._source.tools - self._hidden

    async def offer(self) -> Sequence[Lookup]:
        """What the source offers for the tools that are left."""
        return tuple(lookup for lookup in await self._source.offer() if lookup.tool not in self._hidden)

    async def look(self, lookup: Lookup) -> Observation:
        """What the source answers; a hidden tool is an unknown one."""
        return unknown_tool(lookup) if lookup.tool in self._hidden else await self._source.look(lookup)
