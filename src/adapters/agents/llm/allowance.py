"""The time that a model may take in one run: the rest of the run's time is for the evidence and the fallback."""

from __future__ import annotations

from attrs import frozen

from casenotes.adapters.agents.llm import failure
from casenotes.adapters.agents.llm.failure import ModelFailed
from casenotes.adapters.agents.looking import Monotonic

SHARE = 0.8
"""The part of the run's time after which no model is asked any more."""


@frozen
class Allowance:
    """``until``: the moment after which nothing is left, in seconds of the clock."""

    clock: Monotonic
    until: float

    @classmethod
    def of_run(cls, run_timeout: float, clock: Monotonic) -> Allowance:
        """Of a run that begins now and may take ``run_timeout`` seconds."""
        return cls(clock, clock() + SHARE * run_timeout)

    def next_call(self) -> float:
        """Seconds that the next call may take: half of what is left, so that one that hangs leaves time to go on.

        Raises ``ModelFailed`` when nothing is left.
        """
        left = self.until - self.clock()
        if left <= 0:
            raise ModelFailed(failure.NO_TIME)
        return left / 2
