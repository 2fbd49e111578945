"""A run's trace as a page for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from casenotes.core.model import AgentStep, DiagnosisRun, Feedback, ToolInvocation
from casenotes.core.text import Json, json_text
from casenotes.core.views import RunTrace
from casenotes.entrypoints.cli.terminal import (
    WIDTH,
    cells,
    counted,
    duration,
    moment,
    one_line,
    size,
    visible,
    wrapped,
)


def trace_page(trace: RunTrace) -> str:
    """Question, answer, steps with their tool calls, graph, feedback and evaluation. Ends without a line end."""
    sections = [
        _head(trace),
        _section("QUESTION", [] if trace.run is None else [wrapped(trace.run.query, "  ")]),
        _section("ANSWER", [] if trace.answer is None else [wrapped(trace.answer, "  ")]),
        _section("STEPS AND TOOL CALLS", _work(trace.agent_steps, trace.tool_invocations)),
        _section("GRAPH", [] if trace.run is None else _graph(trace.run.orchestration_trace)),
        _section("FEEDBACK", [] if trace.feedback is None else _feedback(trace.feedback)),
        _section("SELF-EVALUATION", _evaluation(trace.self_evaluation)),
    ]
    return "\n\n".join(section for section in sections if section)


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *lines]) if lines else ""


def _head(trace: RunTrace) -> str:
    session, run = trace.session, trace.run
    pairs = counted(session.message_pair_count, "answered turn")
    lines = [
        wrapped(session.session_id, "session  "),
        f"         {session.status}, {pairs}, last active {moment(session.last_active_at)}",
    ]
    if run is None:
        lines.append("run      none" + (", this is what the old system kept" if _is_old(trace) else ""))
        return "\n".join(lines)
    state = ", ".join(
        [
            visible(run.status),
            visible(run.agent_flow),
            *(["degraded"] if run.degraded else []),
            *(["without its conversation"] if run.context_degraded else []),
        ]
    )
    lines += [wrapped(run.run_id, "run      "), f"         {state}", f"         {_times(run)}"]
    if run.error_message is not None:
        lines.append(wrapped(run.error_message, "reason   "))
    return "\n".join(lines)


def _is_old(trace: RunTrace) -> bool:
    return trace.answer is not None or bool(trace.agent_steps or trace.tool_invocations)


def _times(run: DiagnosisRun) -> str:
    if run.duration is None:
        return f"began {moment(run.created_at)}, still running"
    return f"began {moment(run.created_at)}, took {duration(run.duration // timedelta(milliseconds=1))}"


def _work(steps: Sequence[AgentStep], tools: Sequence[ToolInvocation]) -> list[str]:
    """Each tool call under its step; those of no step, or of one that was not recorded, before all steps."""
    known = {step.sequence for step in steps}
    lines = [line for tool in tools if tool.step_sequence not in known for line in _tool_lines(tool)]
    for step in steps:
        lines += _step_lines(step)
        lines += [line for tool in tools if tool.step_sequence == step.sequence for line in _tool_lines(tool)]
    return lines


def _step_lines(step: AgentStep) -> list[str]:
    said = [step.step_type, *([step.model] if step.model else []), str(step.status)]
    if step.duration_ms is not None:
        said.append(duration(step.duration_ms))
    if step.input_tokens is not None or step.output_tokens is not None:
        said.append(f"{_number(step.input_tokens)} tokens in, {_number(step.output_tokens)} out")
    lines = [
        wrapped(f"{step.agent_name}: {', '.join(part for part in said if part)}", f"  {step.sequence}. ")
    ]
    if step.error_message is not None:
        lines.append(wrapped(step.error_message, "     ! "))
    lines += [
        f"     {name} {one_line(text, WIDTH - 10)}"
        for name, text in (("in ", step.input), ("out", step.output))
        if text
    ]
    return lines


def _number(count: int | None) -> str:
    return "?" if count is None else str(count)


def _tool_lines(tool: ToolInvocation) -> list[str]:
    arguments = "" if tool.arguments in (None, {}) else f" {json_text(tool.arguments)}"
    outcome = [str(tool.status)]
    if tool.result_size is not None:
        outcome.append(size(tool.result_size) + (" (cut)" if tool.result_truncated else ""))
    if tool.duration_ms is not None:
        outcome.append(duration(tool.duration_ms))
    label = f"     [T{tool.sequence}] "
    margin = " " * len(label)
    call, end = wrapped(f"{tool.tool_name}{arguments}", label), f"-> {', '.join(outcome)}"
    fits = "\n" not in call and cells(call) + 1 + cells(end) <= WIDTH
    lines = [f"{call} {end}"] if fits else [call, f"{margin}{end}"]
    if tool.error_message is not None:
        lines.append(wrapped(tool.error_message, f"{margin}! "))
    if tool.result is not None:
        shown = tool.result if isinstance(tool.result, str) else json_text(tool.result)
        lines.append(f"{margin}{one_line(shown, WIDTH - len(margin))}")
    return lines


def _graph(trace: Json) -> list[str]:
    if not isinstance(trace, dict):
        return []
    moves = trace.get("transitions")
    nodes = (
        [str(move.get("to")) for move in moves if isinstance(move, dict)] if isinstance(moves, list) else []
    )
    end = f"ended {trace.get('terminationReason') or 'without a reason'}"
    retries = trace.get("evidenceRetryCount")
    if isinstance(retries, int) and retries:
        end += f", evidence gathered {retries + 1} times"
    return [wrapped(" > ".join(["START", *nodes]), "  "), wrapped(end, "  ")]


def _feedback(feedback: Feedback) -> list[str]:
    when = "" if feedback.updated_at is None else f", {moment(feedback.updated_at)}"
    lines = [f"  {visible(feedback.rating)}{when}"]
    if feedback.comment:
        lines.append(wrapped(feedback.comment, "  "))
    return lines


def _evaluation(found: Json) -> list[str]:
    """A checklist of what is known by name, then the rest as it is."""
    if not isinstance(found, dict):
        return [] if found is None else [_fact("found", found)]
    return [line for name, value in found.items() for line in _finding(name, value)]


def _finding(name: str, value: Json) -> Iterable[str]:
    match name, value:
        case "citations", {"cited": cited, "unsupported": unsupported, "valid": bool(valid)}:
            return [_checked(valid, "citations", f"{cited} of calls that were made, {unsupported} of none")]
        case "evidence", {"toolCalls": calls, "failed": failed}:
            return [_checked(failed == 0, "evidence", f"{calls} tool calls, {failed} failed")]
        case "degraded", bool(degraded):
            return [_checked(not degraded, "complete", "degraded" if degraded else "nothing was missing")]
        case "aiops_rule_evaluation", {"checks": list(checks), "summary": summary}:
            return [
                wrapped(str(summary), "  rules: "),
                *(_check(check) for check in checks if isinstance(check, dict)),
            ]
    return [_fact(name, value)]


def _check(check: dict[str, Json]) -> str:
    return _checked(check.get("passed") is True, str(check.get("id")), str(check.get("detail")))


def _checked(passed: bool, name: str, detail: str) -> str:
    return wrapped(f"{name}: {detail}", f"  [{'x' if passed else ' '}] ")


def _fact(name: str, value: Json) -> str:
    return wrapped(f"{name}: {value if isinstance(value, str) else json_text(value)}", "   -  ")
