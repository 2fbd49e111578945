"""The current time, for one that has no clock of its own."""

from __future__ import annotations

from collections.abc import Sequence

from casenotes.adapters.evidence.live.prometheus import utc_now
from casenotes.adapters.evidence.recorded import unknown_tool
from casenotes.ports.agent import Lookup, Observation, ObservationStatus
from casenotes.ports.ambient import Clock

TIME_TOOL = "time.now"


class TimeSource:
    """``time.now`` answers with the current time in UTC."""

    tools = frozenset({TIME_TOOL})

    def __init__(self, now: Clock = utc_now) -> None:
        self._now = now

    async def offer(self) -> Sequence[Lookup]:
        """Nothing: the time alone explains no fault."""
        return ()

    async def look(self, lookup: Lookup) -> Observation:
        """The time, to the second."""
        if lookup.tool != TIME_TOOL:
            return unknown_tool(lookup)
        now = self._now().isoformat(timespec="seconds").replace("+00:00", "Z")
        return Observation(ObservationStatus.SUCCESS, {"utc": now})
