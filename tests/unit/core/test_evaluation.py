"""Named rules over a stored trace."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from casenotes.core.evaluation import (
    ALERTS_TOOL,
    RUNBOOK_TOOL,
    aiops_rule_evaluation,
    coverage,
    self_evaluation,
    supported,
)
from casenotes.core.model import DiagnosisRun, Lease, ToolInvocation
from casenotes.core.words import AgentFlow, StepStatus

T0 = datetime(2026, 3, 1, tzinfo=UTC)
RUN = DiagnosisRun.start("run-1", "s-1", "q", AgentFlow.AI_OPS, T0, Lease("me", T0 + timedelta(seconds=30)))
ALERTS = [{"labels": {"alertname": "PoolExhausted"}}, {"labels": {"alertname": "HighCpu"}}]
REPORT = """# Report
## PoolExhausted
- The pool is full [T2].
- Next action: raise the pool size.
## HighCpu
- Not found: any container restart.
- None known.
- No runbook for HighCpu [T5].
- `logs.search` failed [T4].
"""


def call(sequence: int, name: str, result: Any = None, **more: Any) -> ToolInvocation:
    return RUN.tool_call(sequence, name, T0, result=result, **more)


CALLS = [
    call(1, ALERTS_TOOL, ALERTS),
    call(2, "kubectl_describe", "full"),
    call(3, RUNBOOK_TOOL, "do this", arguments={"alertname": "PoolExhausted"}),
    call(4, "logs.search", status=StepStatus.FAILED, error_message="down"),
    call(5, RUNBOOK_TOOL, None, arguments={"alertname": "HighCpu"}),
]


def failed(report: str, calls: list[ToolInvocation]) -> set[str]:
    checks: Any = aiops_rule_evaluation(report, calls)["checks"]
    return {check["id"] for check in checks if not check["passed"]}


def test_a_good_report_passes_every_rule() -> None:
    verdict = aiops_rule_evaluation(REPORT, CALLS)
    assert failed(REPORT, CALLS) == set()
    assert (verdict["version"], verdict["passed"], verdict["score"]) == (1, True, 1.0)
    assert verdict["summary"] == "7 of 7 rules hold"


@pytest.mark.parametrize(
    ("report", "calls", "rule"),
    [
        (REPORT, CALLS[1:], "alerts_read"),
        (REPORT.replace("PoolExhausted", "Something"), CALLS, "alerts_treated"),
        (REPORT.replace("full [T2]", "full"), CALLS, "findings_cited"),
        (REPORT.replace("[T2]", "[T9]"), CALLS, "citations_exist"),
        (REPORT.replace("[T2]", "[T2] [unsupported]"), CALLS, "citations_exist"),
        (REPORT.replace("No runbook for HighCpu [T5]", "Odd [T5]"), CALLS[:4], "runbook_consulted"),
        ("PoolExhausted HighCpu\n- Next step: x", CALLS, "gaps_declared"),
        (REPORT.replace("Next action", "Then"), CALLS, "next_action_given"),
    ],
)
def test_a_report_fails_the_rule_that_it_breaks(report: str, calls: list[ToolInvocation], rule: str) -> None:
    assert rule in failed(report, calls)
    assert aiops_rule_evaluation(report, calls)["passed"] is False


def test_no_firing_alert_is_a_report_that_passes() -> None:
    assert failed("No alert is firing [T1].", [call(1, ALERTS_TOOL, [])]) == set()


@pytest.mark.parametrize(
    ("over", "firing"),
    [
        ({}, True),
        ({"status": {"state": "active"}, "endsAt": "0001-01-01T00:00:00Z"}, True),
        ({"status": {"state": "brand-new"}, "endsAt": "soon"}, True),
        ({"endsAt": "2026-03-01T00:00:01Z"}, True),
        ({"endsAt": "2026-02-28T23:59:59Z"}, False),
        ({"status": {"state": "suppressed"}}, False),
        ({"status": "resolved"}, False),
    ],
)
def test_only_an_alert_that_fires_must_be_treated(over: dict[str, Any], firing: bool) -> None:
    alerts = [{"labels": {"alertname": "DiskFull"}, **over}]
    assert ("alerts_treated" in failed("Nothing.", [call(1, ALERTS_TOOL, alerts)])) is firing


def test_a_citation_of_a_call_that_was_not_made_is_replaced_and_counted() -> None:
    assert supported("a [T1] b [T2] c [T0]", 1) == ("a [T1] b [unsupported] c [unsupported]", 2)


def test_an_aiops_run_carries_its_rule_evaluation_and_another_does_not() -> None:
    said = self_evaluation(RUN, REPORT, CALLS, unsupported=0, degraded=False, said={"coverage": 1})
    assert "aiops_rule_evaluation" in said
    assert said["coverage"] == 1
    chat = DiagnosisRun.start("run-2", "s-1", "q", AgentFlow.CHAT, T0, Lease("me", T0))
    plain = self_evaluation(chat, "x [T2]", CALLS, unsupported=1, degraded=True)
    assert "aiops_rule_evaluation" not in plain
    assert plain["citations"] == {"cited": 1, "unsupported": 1, "valid": False}
    assert plain["evidence"] == {"toolCalls": 5, "failed": 1, "retries": 0, "coverage": 1.0}
    assert plain["degraded"] is True


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        ("", None),
        ("# Title\n\n**Found**\n\n(As before.)\n", None),
        ("The pool is full [T1].", 1.0),
        ("The pool is full.\nIt was made smaller [T1].", 1.0),
        ("The pool is full.\n\nIt was made smaller [T1].", 0.5),
        ("**Shown**\n\n- The pool is full [T1].\n- The disk is slow.\n1. One.\n2. Two [T2].\n", 0.5),
        ("It is full [T1].\n\n**Evidence gaps**\n\n- Not found: `logs`.\n- Next step: look.\n", 1.0),
    ],
)
def test_coverage_is_the_share_of_statements_that_cite(answer: str, share: float | None) -> None:
    assert coverage(answer) == share


def test_retries_are_counted() -> None:
    found: Any = self_evaluation(RUN, "x [T1]", CALLS, unsupported=0, degraded=False, retries=2)
    assert found["evidence"]["retries"] == 2
