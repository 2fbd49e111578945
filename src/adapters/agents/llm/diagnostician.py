"""The diagnostician with a language model."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

from casenotes.adapters.agents.flows import played
from casenotes.adapters.agents.investigating import Investigation
from casenotes.adapters.agents.llm.allowance import Allowance
from casenotes.adapters.agents.llm.client import ChatModel
from casenotes.adapters.agents.llm.reasoner import ModelReasoner
from casenotes.adapters.agents.looking import Monotonic
from casenotes.adapters.agents.sources import Sources
from casenotes.ports.agent import AgentEvent, Enquiry, EvidenceSource
from casenotes.ports.ambient import Clock


def _utc_now() -> datetime:
    return datetime.now(UTC)


class LlmDiagnostician:
    """A ``Diagnostician`` whose model chooses what to look at, and writes the answer from what was seen.

    The flows, the evidence and their bounds are those of the embedded one, which also takes over, with ``degraded``,
    wherever the model fails. ``run_timeout``: seconds that a run may take; the model gets the first part of them.
    ``close`` closes the model and the sources.
    """

    def __init__(
        self,
        sources: Sequence[EvidenceSource],
        model: ChatModel,
        run_timeout: float,
        clock: Monotonic = time.monotonic,
        now: Clock = _utc_now,
    ) -> None:
        self._source = Sources(sources)
        self._model = model
        self._run_timeout = run_timeout
        self._clock = clock
        self._now = now

    async def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        """The events of the run, ``Answered`` last."""
        investigation = Investigation(enquiry, self._source, self._clock, self._now)
        reasoner = ModelReasoner(
            self._model,
            Allowance.of_run(self._run_timeout, self._clock),
            enquiry.flow,
            enquiry.conversation,
        )
        async for event in played(investigation, reasoner):
            yield event

    async def close(self) -> None:
        """Close the model and the sources."""
        try:
            await self._model.close()
        finally:
            await self._source.close()
