"""The metrics of a baseline: which way is better, and from where on a difference counts. All thresholds are here.

A difference is a drift when it is larger than ``least`` *and* larger than ``share`` of the larger of the two values.
Both at 0: every difference is one. That is so for what a diagnosis says; what it takes is noisy, and counts only when
it is large. The rule does not change when the two files change places.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from casenotes.core.baseline.report import IncidentResult
from casenotes.core.text import Json


@frozen
class Metric:
    """One figure of an incident. ``read`` gives it as a number; a yes or no is 1 or 0."""

    name: str
    higher_is_better: bool
    read: Callable[[IncidentResult], int]
    share: float = 0.0
    least: int = 0
    yes_or_no: bool = False

    def drifts(self, old: IncidentResult, new: IncidentResult) -> bool:
        """Whether the two differ by more than the threshold."""
        before, after = self.read(old), self.read(new)
        return abs(after - before) > max(self.least, self.share * max(before, after))

    def improves(self, old: IncidentResult, new: IncidentResult) -> bool:
        """Whether the new one is better."""
        return (self.read(new) > self.read(old)) is self.higher_is_better

    def shown(self, result: IncidentResult) -> Json:
        """The figure as a report shows it."""
        return bool(self.read(result)) if self.yes_or_no else self.read(result)


METRICS = (
    Metric("succeeded", True, lambda one: int(one.error is None), yes_or_no=True),
    Metric("degraded", False, lambda one: int(one.measures.degraded), yes_or_no=True),
    Metric("citations.valid", True, lambda one: int(one.measures.citations_valid), yes_or_no=True),
    Metric("citations.unsupported", False, lambda one: one.measures.unsupported),
    # An answer may be worded in fewer sentences; one that loses most of its citations has lost its ground.
    Metric("citations.cited", True, lambda one: one.measures.cited, share=0.5, least=1),
    # Over-answering, with the decoys: what is said without evidence, and how much is said.
    Metric("statements.uncited", False, lambda one: one.measures.uncited),
    Metric("answerChars", False, lambda one: one.measures.answer_chars, share=0.5, least=1000),
    # An incident that lost a part of its evidence tests less than it did.
    Metric("evidence.parts", True, lambda one: len(one.evidence)),
    Metric("tools.failed", False, lambda one: one.measures.failed_tools),
    Metric("tools.all", False, lambda one: one.measures.tools, share=0.25, least=3),
    Metric("steps", False, lambda one: one.measures.steps, share=0.25, least=2),
    Metric("tokens.input", False, lambda one: one.measures.input_tokens, share=0.25, least=2000),
    Metric("tokens.output", False, lambda one: one.measures.output_tokens, share=0.25, least=500),
    # The machine and its other work decide most of it. What is too slow altogether is ended by the time-out.
    Metric("durationMs", False, lambda one: one.measures.duration_ms, share=0.8, least=30_000),
)
