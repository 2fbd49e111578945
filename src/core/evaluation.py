"""Named rules over a stored trace: what can be said of a run's quality without asking a model.

Source: "AIOps rule evaluation SHALL be stored under diagnosis_run.self_evaluation.aiops_rule_evaluation".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from attrs import frozen

from casenotes.core.model import DiagnosisRun, ToolInvocation
from casenotes.core.text import JsonObject
from casenotes.core.words import AgentFlow, StepStatus

VERSION = 1
UNSUPPORTED = "[unsupported]"

ALERTS_TOOL = "alerts.firing"
"""The tool call that every AI_OPS run makes first: its result is the list of alerts, Alertmanager v2 form."""

RUNBOOK_TOOL = "runbooks.find"
"""The tool call that looks for a runbook, by ``alertname``. Its result is the runbook's text, or null."""

_NEVER = datetime(1, 1, 2, tzinfo=UTC)
"""Alertmanager's zero time lies before: an alert that ends then has no end."""

_CITATION = re.compile(r"\[T(\d{1,9})\]")
_ITEM = re.compile(r"^[ \t]*(?:[-*]|\d+\.)[ \t]+(.*)$", re.MULTILINE)
# Both are looked for in text in lower case: that takes a third of the time of a pattern that ignores case.
_GAP = re.compile(r"^none\b|not found|no data|no runbook|nothing|failed|could not|unavailable|gap|missing")
_NEXT = re.compile(r"next (?:action|step)")
_BLOCK = re.compile(r"\n[ \t]*(?=\n|[-*][ \t]|\d+\.[ \t]|#)")
_LABEL = re.compile(r"#{1,6}\s.*|\*\*[^*\n]+\*\*:?|[-=*_|:\s]*|\([^()]*\)")


def supported(text: str, tool_count: int) -> tuple[str, int]:
    """The text with each citation of a call that was not made replaced by ``[unsupported]``, and how many were."""
    unsupported = 0

    def judge(match: re.Match[str]) -> str:
        nonlocal unsupported
        if 1 <= int(match.group(1)) <= tool_count:
            return match.group(0)
        unsupported += 1
        return UNSUPPORTED

    return _CITATION.sub(judge, text), unsupported


def cited(answer: str) -> frozenset[int]:
    """The sequences of the tool calls that an answer cites."""
    return frozenset(int(number) for number in _CITATION.findall(answer))


def coverage(answer: str) -> float | None:
    """The share of an answer's statements that cite a call; ``None`` when it states nothing.

    A statement is a paragraph or an item of a list. Headings, and what says that something is missing or what to
    do next, state nothing about the system.
    """
    blocks = (block.strip() for block in _BLOCK.split("\n" + answer))
    stated = [block for block in blocks if not _LABEL.fullmatch(block) and _states(block.lower())]
    if not stated:
        return None
    return round(sum(_CITATION.search(block) is not None for block in stated) / len(stated), 4)


def _states(lowered: str) -> bool:
    """Whether this states something about the system, rather than that something is missing or what to do next."""
    return _GAP.search(lowered) is None and _NEXT.search(lowered) is None


def self_evaluation(
    run: DiagnosisRun,
    answer: str,
    tools: Sequence[ToolInvocation],
    *,
    unsupported: int,
    degraded: bool,
    retries: int = 0,
    said: JsonObject | None = None,
) -> JsonObject:
    """What a run's own rows say of its answer; ``said`` is what the diagnostician found of itself, kept by name.

    ``retries`` counts how often its graph gathered evidence anew.
    """
    calls = {tool.sequence: tool for tool in tools}
    found: JsonObject = dict(said or {})
    found["citations"] = {
        "cited": len(cited(answer) & calls.keys()),
        "unsupported": unsupported,
        "valid": unsupported == 0 and cited(answer) <= calls.keys(),
    }
    found["evidence"] = {
        "toolCalls": len(tools),
        "failed": sum(tool.status is StepStatus.FAILED for tool in tools),
        "retries": retries,
        "coverage": coverage(answer),
    }
    found["degraded"] = degraded
    if run.agent_flow == AgentFlow.AI_OPS:
        found["aiops_rule_evaluation"] = aiops_rule_evaluation(answer, tools)
    return found


@frozen
class Check:
    """One rule's verdict; ``detail`` says what was seen."""

    id: str
    passed: bool
    detail: str


def aiops_rule_evaluation(answer: str, tools: Sequence[ToolInvocation]) -> JsonObject:
    """The verdict of all rules on an AIOps report and the tool calls stored with it; ``score`` is the share passed."""
    names = _alert_names(tools)
    checks = [
        _alerts_read(tools),
        _alerts_treated(answer, names),
        _findings_cited(answer),
        _citations_exist(answer, tools),
        _runbooks_consulted(answer, tools, names),
        _gaps_declared(answer, tools),
        _next_action_given(answer, names),
    ]
    passed = sum(check.passed for check in checks)
    failed = [check.id for check in checks if not check.passed]
    return {
        "version": VERSION,
        "passed": not failed,
        "score": round(passed / len(checks), 4),
        "checks": [{"id": c.id, "passed": c.passed, "detail": c.detail} for c in checks],
        "summary": f"{passed} of {len(checks)} rules hold"
        + (f"; not: {', '.join(failed)}" if failed else ""),
    }


def _alert_names(tools: Sequence[ToolInvocation]) -> list[str]:
    names: dict[str, None] = {}
    for tool in tools:
        if tool.tool_name != ALERTS_TOOL or not isinstance(tool.result, list):
            continue
        for alert in tool.result:
            if not isinstance(alert, dict) or not _is_firing(alert, tool.created_at):
                continue
            labels = alert.get("labels")
            name = labels.get("alertname") if isinstance(labels, dict) else None
            if isinstance(name, str) and name:
                names[name] = None
    return list(names)


def _is_firing(alert: JsonObject, at: datetime) -> bool:
    """Neither held back nor over. An unknown state fires: a new word must not silence an alert."""
    status = alert.get("status")
    state = status.get("state") if isinstance(status, dict) else status
    ends = alert.get("endsAt")
    try:
        ended = isinstance(ends, str) and _NEVER < datetime.fromisoformat(ends) <= at
    except (ValueError, TypeError):  # not a time, or one without a zone
        ended = False
    return not ended and state not in ("suppressed", "resolved")


def _alerts_read(tools: Sequence[ToolInvocation]) -> Check:
    reads = [tool for tool in tools if tool.tool_name == ALERTS_TOOL]
    good = any(tool.status is StepStatus.SUCCESS and not tool.result_truncated for tool in reads)
    return Check(
        "alerts_read", good, "the firing alerts were read" if good else "the alerts could not be read"
    )


def _alerts_treated(answer: str, names: Sequence[str]) -> Check:
    missing = [name for name in names if name not in answer]
    detail = f"not treated: {', '.join(missing)}" if missing else f"{len(names)} firing alerts, each treated"
    return Check("alerts_treated", not missing, detail)


def _findings_cited(answer: str) -> Check:
    bare = [item for item in _ITEM.findall(answer) if not _CITATION.search(item) and _states(item.lower())]
    detail = f"{len(bare)} findings without a citation" if bare else "each finding cites its evidence"
    return Check("findings_cited", not bare, detail)


def _citations_exist(answer: str, tools: Sequence[ToolInvocation]) -> Check:
    made = {tool.sequence for tool in tools}
    stray = sorted(cited(answer) - made)
    good = not stray and UNSUPPORTED not in answer
    return Check("citations_exist", good, "each citation has its call" if good else "a citation has no call")


def _runbooks_consulted(answer: str, tools: Sequence[ToolInvocation], names: Sequence[str]) -> Check:
    asked = {
        str(tool.arguments.get("alertname"))
        for tool in tools
        if tool.tool_name == RUNBOOK_TOOL and isinstance(tool.arguments, dict)
    }
    missing = [name for name in names if name not in asked]
    said = re.search(r"no runbook", answer, re.IGNORECASE) is not None
    good = not missing or said
    return Check(
        "runbook_consulted", good, "asked for each alert" if good else f"not for: {', '.join(missing)}"
    )


def _gaps_declared(answer: str, tools: Sequence[ToolInvocation]) -> Check:
    failed = [tool.sequence for tool in tools if tool.status is StepStatus.FAILED]
    silent = [n for n in failed if f"[T{n}]" not in answer]
    good = not silent or _GAP.search(answer.lower()) is not None
    return Check(
        "gaps_declared", good, "what failed is said" if good else f"{len(silent)} failed calls not said"
    )


def _next_action_given(answer: str, names: Sequence[str]) -> Check:
    good = not names or _NEXT.search(answer.lower()) is not None
    return Check("next_action_given", good, "a next action is given" if good else "no next action")
