"""Judging a run by its trace: which facts its answer states, what rests on evidence, and what it took."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Protocol

from casenotes.core import evaluation
from casenotes.core.baseline.report import Judged, Measures
from casenotes.core.text import Json
from casenotes.core.views import RunTrace
from casenotes.core.words import StepStatus

_HEADING = re.compile(r"#{1,6}\s|\*\*[^*]+\*\*:?$")
_ITEM = re.compile(r"^(?:[-*+]|\d+[.)])\s+")
_CLAIMS_NOTHING = re.compile(r"\b(?:next|gaps?|looked at)\b", re.IGNORECASE)
"""Under such a heading an answer says what to do, what is missing or where it looked: nothing that needs evidence."""
_OF_ABSENCE = re.compile(
    r"^(?:\*\*)?(?:no|none|nothing|i have no|i answer)\b|not found|failed|showed nothing", re.IGNORECASE
)


class Statable(Protocol):
    """A fact of an incident, by which an answer is judged."""

    @property
    def text(self) -> str: ...
    @property
    def terms(self) -> tuple[str, ...]: ...
    def stated_in(self, answer: str) -> bool: ...


def judge(facts: Iterable[Statable], answer: str | None) -> tuple[Judged, ...]:
    """Each fact with whether the answer states it; a run without an answer states none."""
    return tuple(
        Judged(fact.text, fact.terms, answer is not None and fact.stated_in(answer)) for fact in facts
    )


def claims(answer: str) -> list[str]:
    """The lines of an answer that claim something: no heading, no advice, no gap, nothing that was not found."""
    found: list[str] = []
    claiming = True
    for line in map(str.strip, answer.splitlines()):
        if _HEADING.match(line):
            claiming = _CLAIMS_NOTHING.search(line) is None
            continue
        said = _ITEM.sub("", line, count=1)
        if said and claiming and not _OF_ABSENCE.search(said):
            found.append(said)
    return found


def measure(trace: RunTrace) -> Measures:
    """What the stored trace of an ended run shows. The rules are those of ``core.evaluation``, for every flow."""
    run, answer = trace.run, trace.answer or ""
    if run is None:
        return Measures()
    calls = {tool.sequence for tool in trace.tool_invocations}
    cited = evaluation.cited(answer)
    unsupported = len(cited - calls) + answer.count(evaluation.UNSUPPORTED)
    said = claims(answer)
    return Measures(
        degraded=run.degraded,
        citations_valid=trace.answer is not None and unsupported == 0,
        cited=len(cited & calls),
        unsupported=unsupported,
        statements=len(said),
        uncited=sum(not evaluation.cited(line) for line in said),
        rules=_rules(trace),
        steps=run.step_count,
        tools=run.tool_call_count,
        failed_tools=sum(tool.status is StepStatus.FAILED for tool in trace.tool_invocations),
        input_tokens=_sum(step.input_tokens for step in trace.agent_steps),
        output_tokens=_sum(step.output_tokens for step in trace.agent_steps),
        answer_chars=len(answer),
        duration_ms=round((run.duration or timedelta(0)) / timedelta(milliseconds=1)),
    )


def _rules(trace: RunTrace) -> dict[str, bool]:
    stored = trace.self_evaluation
    found = stored.get("aiops_rule_evaluation") if isinstance(stored, dict) else None
    if found is None and trace.answer is not None:
        found = evaluation.aiops_rule_evaluation(trace.answer, trace.tool_invocations)
    checks: Json = found.get("checks") if isinstance(found, dict) else None
    return {
        str(check["id"]): check.get("passed") is True
        for check in (checks if isinstance(checks, list) else ())
        if isinstance(check, dict) and "id" in check
    }


def _sum(counts: Iterable[int | None]) -> int:
    return sum(count or 0 for count in counts)
