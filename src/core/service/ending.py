"""The end of a run in the ledger: sealed over its stored rows, with its session's upkeep, in one unit of work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeAlias

from attrs import evolve

from casenotes.core import rules
from casenotes.core.model import DiagnosisRun, RunMetrics, ToolInvocation
from casenotes.core.seal import ChainHead, seal
from casenotes.ports.ledger import UnitOfWork

Outcome: TypeAlias = Callable[[DiagnosisRun, RunMetrics, Sequence[ToolInvocation]], DiagnosisRun]
"""How a locked run ends, given what its stored rows count and its tool calls."""


async def end_run(
    work: UnitOfWork, run: DiagnosisRun, head: ChainHead, outcome: Outcome, *, expires_at: datetime | None
) -> DiagnosisRun:
    """End a run that ``work`` has locked, and give it as stored; the caller commits.

    Counts, evaluation and seal come from the stored rows. The run becomes the last of its session's chain, which
    stands at ``head`` and is locked too, its session is touched, and a rating given before makes its case.
    """
    key = (run.session_id, run.run_id)
    steps, tools = await work.journal.entries(*key)
    ended = outcome(run, RunMetrics(len(steps), len(tools)), tools)
    sealed = seal(ended, steps, tools, head)
    await work.runs.end(ended, sealed, expires_at=expires_at)
    case = rules.case_for(ended, ended.updated_at)
    if case is not None:
        await work.cases.put(case)
    return evolve(ended, digest=sealed.digest)
