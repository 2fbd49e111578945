"""The embedded diagnostician: no model, no guess; it looks, reads, weighs, and says what it saw."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

from casenotes.adapters.agents.flows import played
from casenotes.adapters.agents.investigating import Investigation
from casenotes.adapters.agents.looking import Monotonic
from casenotes.adapters.agents.sources import Sources
from casenotes.ports.agent import AgentEvent, Enquiry, EvidenceSource
from casenotes.ports.ambient import Clock


def _utc_now() -> datetime:
    return datetime.now(UTC)


class EmbeddedDiagnostician:
    """A ``Diagnostician`` that answers from evidence alone, by fixed rules.

    Deterministic: the same enquiry on the same evidence gives the same events, durations aside. Every statement
    of an answer cites its call; no lookup is made twice in a run, and the flows bound how many are made.
    ``clock`` gives monotonic seconds, for durations; ``now`` tells which alerts are over.
    """

    def __init__(
        self,
        sources: Sequence[EvidenceSource],
        clock: Monotonic = time.monotonic,
        now: Clock = _utc_now,
    ) -> None:
        self._source = Sources(sources)
        self._clock = clock
        self._now = now

    async def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        """The events of the run, ``Answered`` last. A flow that has no graph and no report is answered as CHAT."""
        investigation = Investigation(enquiry, self._source, self._clock, self._now)
        async for event in played(investigation):
            yield event

    async def close(self) -> None:
        """Close the sources."""
        await self._source.close()
