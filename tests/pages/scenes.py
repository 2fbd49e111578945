"""Runs worth looking at: scripts of a diagnostician that takes its time, fails a little, and quotes a hostile world."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from support.postgres import put_rows
from support.service import Running

from casenotes.adapters.sql.tables import agent_step, tool_invocation
from casenotes.core.orchestration import EvidenceRetried, GraphEnded, NodeEntered, TerminationReason
from casenotes.core.words import StepStatus
from casenotes.ports.agent import (
    ALERTS_TOOL,
    RUNBOOK_TOOL,
    AgentEvent,
    Answered,
    Chunk,
    Enquiry,
    GraphMoved,
    Progress,
    StepTaken,
    ToolCalled,
)

WHY_SLOW = "Why is checkout slow?"
WHY_PAYMENT = "And why did only payment fail?"

BROUGHT = "<x-brought onclick=alert(1)>hi</x-brought><img src=x onerror=\"document.title='owned'\">"
HOSTILE = f"{BROUGHT}<script>document.title='owned'</script> \N{RIGHT-TO-LEFT OVERRIDE}gpj.exe\x1b[31m"
SHOWN = f"{BROUGHT}<script>document.title='owned'</script> ⟨U+202E⟩gpj.exe␛[31m"

HOSTILE_ANSWER = f"""# {HOSTILE}

{HOSTILE} [T1] [T7] [a](javascript:document.title='owned') [b](data:text/html,<script>1</script>)
![c](https://elsewhere.invalid/pixel.png) [d](https://elsewhere.invalid/page) <javascript:alert(1)>
[T1]: https://elsewhere.invalid/hijacked

`[T1] {BROUGHT}`

```html
[T1] {BROUGHT}
```

| {BROUGHT} | b |
|---|--:|
| [T1] | {BROUGHT} |
"""

_ROWS = """10:36:04  212x  ERROR  could not connect to db-main:5432: connection refused
10:36:05   18x  WARN   pool exhausted (0 idle of 20)
10:37:38    1x  INFO   pool recovered"""


async def _tool(
    ms: int, name: str, arguments: dict[str, object], result: object = None, error: str | None = None
) -> ToolCalled:
    await asyncio.sleep(ms / 1000)
    status = StepStatus.FAILED if error else StepStatus.SUCCESS
    return ToolCalled(name, arguments, result, status=status, error_message=error, duration_ms=ms)


async def _step(
    ms: int, name: str, kind: str, output: str, tokens: tuple[int, int] | None = None
) -> StepTaken:
    await asyncio.sleep(ms / 1000)
    read, written = tokens or (None, None)
    return StepTaken(
        name,
        kind,
        model="m-large-2",
        output=output,
        duration_ms=ms,
        input_tokens=read,
        output_tokens=written,
    )


async def graph(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    """A graph with a retry, a failed call, a long result and a result that is cut; its second question does more."""
    run_id, more = enquiry.run_id, enquiry.question != WHY_SLOW
    yield GraphMoved(NodeEntered(run_id, "planner"))
    yield await _step(160, "planner", "plan", "metrics first, then the logs of what stands out", (412, 96))
    yield GraphMoved(NodeEntered(run_id, "executor"))
    window = {"since": "10:30", "step": "15s"}
    series = [
        {"at": f"10:3{i}:00", "p95": 0.2 + i / 10, "labels": {"pod": f"checkout-{i}"}} for i in range(9)
    ]
    yield await _tool(90, "metrics.range", {"of": "latency_p95", **window}, series)
    yield await _tool(
        140, "metrics.range", {"of": "db_pool_idle", **window}, {"idle": [20, 20, 4, 0, 0, 0, 11]}
    )
    yield await _tool(
        10, RUNBOOK_TOOL, {"alertname": "PoolExhausted"}, "# Mitigation\n\n1. Drain the node.\n"
    )
    yield GraphMoved(NodeEntered(run_id, "evidence_check"))
    yield await _step(100, "evidence_check", "check", "no log was read yet: look again", (730, 41))
    yield GraphMoved(EvidenceRetried(run_id))
    yield GraphMoved(NodeEntered(run_id, "executor"))
    yield await _tool(210, "logs.search", {"service": "payment", "query": "connection"}, _ROWS)
    if more:
        yield await _tool(120, "deploys.list", {"service": "payment"}, error="timed out after 0.12 s")
        lines = "\n".join(f"10:36:{i % 60:02} payment-7f9 GET /v1/charges 503 {i} ms" for i in range(3000))
        yield await _tool(60, "logs.tail", {"service": "payment", "lines": 3000}, lines)
    yield GraphMoved(NodeEntered(run_id, "evidence_check"))
    yield await _step(70, "evidence_check", "check", "enough", (910, 12))
    yield GraphMoved(NodeEntered(run_id, "composer"))
    subject = "payment" if more else "checkout waits for payment, which"
    text = (
        f"**{subject} lost its database connections at 10:36, when its pod was moved to node-3.**"
        " The pool stayed at `0` of `20` for 94 s [T2], while every other service kept its own [T1]."
        " The log shows *connection refused* 212 times, first at 10:36:04 [T4].\n\n"
    )
    if more:
        text += "Not found: a deploy of payment in the last 24 h; the source did not answer [T5].\n\n"
    text += "Next: drain node-3 and check its network policy; the runbook says how [T3].\n"
    yield Chunk(text)
    yield await _step(180, "composer", "compose", text, (1204, 188))
    yield GraphMoved(GraphEnded(run_id, TerminationReason.COMPOSED))
    yield Answered(self_evaluation={"confidence": "high"} if more else None)


async def degraded(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    """A graph whose evidence stays too thin."""
    run_id = enquiry.run_id
    yield GraphMoved(NodeEntered(run_id, "planner"))
    yield await _step(30, "planner", "plan", "metrics")
    for again in (False, True):
        if again:
            yield GraphMoved(EvidenceRetried(run_id))
        yield GraphMoved(NodeEntered(run_id, "executor"))
        yield await _tool(40, "metrics.range", {"of": "errors"}, error="the metrics source answered 503")
        yield GraphMoved(NodeEntered(run_id, "evidence_check"))
    yield GraphMoved(NodeEntered(run_id, "fallback"))
    yield GraphMoved(GraphEnded(run_id, TerminationReason.EVIDENCE_EXHAUSTED))
    yield Answered(
        "What is known is too thin to name a cause. The metrics source did not answer [T1] [T2].", True
    )


async def careless_report(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    """An AIOps report that breaks rules: a runbook was not looked for, and a finding cites nothing."""
    alerts = [
        {"labels": {"alertname": name, "service": "checkout"}, "startsAt": "2026-12-01T00:00:00.000Z"}
        for name in ("HighLatency", "PoolExhausted")
    ]
    yield Progress("reading the firing alerts")
    yield await _step(40, "operator", "plan", "treat each alert")
    yield await _tool(30, ALERTS_TOOL, {}, alerts)
    yield await _tool(50, RUNBOOK_TOOL, {"alertname": "HighLatency"}, "Drain the node.")
    yield await _tool(80, "logs.search", {"service": "checkout"}, error="the log store is read-only")
    yield Chunk("# Alerts\n\n## HighLatency\n\n- p95 of checkout is over 2 s [T1]\n- the pods look fine\n\n")
    yield Chunk(
        "## Evidence gaps\n\n- Failed: the log store [T3]\n\n## Next action\n\n1. Drain the node [T2]\n"
    )
    yield Answered()


async def hostile(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    """Every field holds markup, a script, a link that runs, and characters that hide."""
    yield StepTaken(HOSTILE, HOSTILE, model=HOSTILE, input=HOSTILE, output=HOSTILE, status=StepStatus.FAILED,
                    error_message=HOSTILE)  # fmt: skip
    yield ToolCalled(HOSTILE, {HOSTILE: HOSTILE}, {HOSTILE: [HOSTILE]}, duration_ms=3)
    yield ToolCalled(HOSTILE, {}, HOSTILE, status=StepStatus.FAILED, error_message=HOSTILE)
    yield Progress(HOSTILE)
    yield Chunk(HOSTILE_ANSWER)
    yield Answered(self_evaluation={HOSTILE: HOSTILE, "deep": {HOSTILE: [HOSTILE]}})


async def seed_steps(here: Running, session_id: str, run_id: str, count: int) -> None:
    """Put so many steps into a run without any, every fourth with a tool call: recording each takes longer."""
    began = datetime.now(UTC)
    steps: list[dict[str, object]] = []
    calls: list[dict[str, object]] = []
    for number in range(1, count + 1):
        row: dict[str, object] = {
            "run_id": run_id,
            "session_id": session_id,
            "created_at": began + timedelta(milliseconds=3 * number),
            "duration_ms": number % 7,
        }
        status = "FAILED" if number % 97 == 0 else "SUCCESS"
        said = {"output": f"step {number} " + "of a long way " * 10, "status": status, "sequence": number}
        steps.append(row | said | {"agent_name": "executor", "step_type": "execute"})
        if number % 4 == 0:
            asked = {"page": number, "query": "timeout waiting for a connection"}
            found = {"result": f"{number}: timeout waiting for a connection\n" * 5, "status": "SUCCESS"}
            place = {"sequence": number // 4, "step_sequence": number, "tool_name": "logs.search"}
            calls.append(row | found | place | {"arguments": asked})
    await put_rows(here.settings.database_url, agent_step, *steps)
    await put_rows(here.settings.database_url, tool_invocation, *calls)


async def scenes(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    """The scene that a question, or the lack of one, stands for."""
    if enquiry.question in (WHY_SLOW, WHY_PAYMENT):
        script = graph(enquiry)
    elif "degraded" in enquiry.question:
        script = degraded(enquiry)
    elif HOSTILE in enquiry.question:
        script = hostile(enquiry)
    else:
        script = careless_report(enquiry)
    async for event in script:
        yield event
