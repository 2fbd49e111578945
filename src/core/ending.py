"""The end of a run: decided from what stands on record of it, by a function that asks nobody anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeAlias

from attrs import evolve, frozen

from casenotes.core import rules
from casenotes.core.model import AgentStep, Case, DiagnosisRun, RunMetrics, ToolInvocation
from casenotes.core.seal import ChainHead, RunSeal, seal


@frozen
class OnRecord:
    """What stands on record of a run that is to end: itself, its entries, and the chain of its session's ended runs."""

    run: DiagnosisRun
    steps: Sequence[AgentStep]
    tools: Sequence[ToolInvocation]
    head: ChainHead


@frozen
class RunEnd:
    """What is stored when a run ends.

    ``run`` has ended, ``seal`` makes it the last of its session's chain. ``expires_at`` becomes that of the session
    unless it is ``None``; ``case`` is the one that a rating given before makes.
    """

    run: DiagnosisRun
    seal: RunSeal
    expires_at: datetime | None
    case: Case | None

    @property
    def stored(self) -> DiagnosisRun:
        """The run as it stands once this is stored."""
        return evolve(self.run, digest=self.seal.digest)


Decide: TypeAlias = Callable[[OnRecord], RunEnd | None]
"""How a run ends; ``None`` leaves it as it is."""

Outcome: TypeAlias = Callable[[DiagnosisRun, RunMetrics, Sequence[ToolInvocation]], DiagnosisRun]
"""The ended run, given what its stored rows count and its tool calls."""


def end_of(on_record: OnRecord, outcome: Outcome, *, expires_at: datetime | None) -> RunEnd:
    """The end of a run: counts, evaluation and seal come from the stored rows. Raises what ``outcome`` raises."""
    steps, tools = on_record.steps, on_record.tools
    run = outcome(on_record.run, RunMetrics(len(steps), len(tools)), tools)
    return RunEnd(
        run, seal(run, steps, tools, on_record.head), expires_at, rules.case_for(run, run.updated_at)
    )
