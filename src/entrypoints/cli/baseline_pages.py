"""What ``casenotes baseline`` prints for people and for a CI's summary."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from casenotes.adapters.evidence import Captured
from casenotes.core.baseline.diff import Comparison, Drift, Verdict
from casenotes.core.baseline.isolation import IsolationDrift, IsolationReport
from casenotes.core.baseline.report import BaselineReport, IncidentResult, in_order
from casenotes.core.text import Json, JsonObject, json_text
from casenotes.entrypoints.cli.terminal import WIDTH, cells, counted, duration, one_line, visible, wrapped

_SHOWN = 40
"""Drifts of run isolation that are listed for people; ``--json`` has all of them."""


def run_page(report: BaselineReport, out: str) -> str:
    """What a run of a suite came to."""
    incidents = in_order(report.incidents)
    width = min(max((cells(one_line(one.id, 34)) for one in incidents), default=0), 34)
    lines = [line for one in incidents for line in _incident(one, width)]
    for bad in report.unreadable:
        lines.append(wrapped(f"{bad.folder}: cannot be read: {bad.reason}", rest="  "))
    facts = sum(len(one.facts) for one in incidents)
    stated = sum(one.stated for one in incidents)
    decoys = sum(decoy.stated for one in incidents for decoy in one.decoys)
    said = f"{counted(len(incidents), 'incident')}: {stated} of {counted(facts, 'fact')} stated"
    said += f", {counted(decoys, 'decoy')} stated" if decoys else ""
    said += f", {len(report.unreadable)} cannot be read" if report.unreadable else ""
    return "\n".join([*lines, "", wrapped(said, rest="  "), f"written to {out}"])


def _incident(one: IncidentResult, width: int) -> Iterator[str]:
    name = one_line(one.id, 34)
    took = f"{counted(one.measures.tools, 'tool call')}, {duration(one.measures.duration_ms)}"
    yield f"{name}{' ' * (width - cells(name))}  {one.stated}/{len(one.facts)} facts  {took}"
    if one.error is not None:
        yield wrapped(f"failed: {one.error}", "  ! ")
    for text in one.missed:
        yield wrapped(text, "  - ")
    for decoy in one.decoys:
        if decoy.stated:
            yield wrapped(f"states what is wrong: {decoy.text}", "  ! ")
    if not one.measures.citations_valid and one.error is None:
        yield "  ! cites calls that were not made"


def diff_page(found: Comparison) -> str:
    """A comparison as a table."""
    lines: list[str] = []
    for incident, drifts in groupby(found.drifts, key=lambda drift: drift.incident):
        lines.append(visible(incident))
        lines += [f"  ({visible(mark)})" for mark in found.marks.get(incident, ())]
        lines += [line for drift in drifts for line in _drift(drift)]
    told = {drift.incident for drift in found.drifts}
    for incident, marks in found.marks.items():
        if incident not in told:
            lines.append(visible(incident))
            lines += [f"  ({visible(mark)})" for mark in marks]
    lines += [wrapped(f"{name}: only in the new one", rest="  ") for name in found.added]
    lines += [wrapped(f"{name}: only in the old one", rest="  ") for name in found.removed]
    for name, (old, new) in found.settings.items():
        lines.append(wrapped(f"setting {name}: {_shown(old)} -> {_shown(new)}", rest="  "))
    for one in found.stale:
        said = f"expected and not seen: {one.incident}, {one.metric} {one.change} ({one.reason})"
        lines.append(wrapped(said, rest="  "))
    return "\n".join([*lines, *([""] if lines else []), wrapped(_summary(found), rest="  ")])


def _drift(drift: Drift) -> Iterator[str]:
    change = f"{_shown(drift.old)} -> {_shown(drift.new)}"
    first = f"  {drift.verdict:<9}  "
    yield wrapped(f"{drift.metric}: {change}", first)
    if drift.reason is not None:
        yield wrapped(drift.reason, " " * (cells(first) + 2))


def _shown(value: Json) -> str:
    match value:
        case True:
            return "yes"
        case False:
            return "no"
        case None:
            return "none"
        case str():
            return value
        case _:
            return json_text(value)


def _summary(found: Comparison) -> str:
    counts = ", ".join(f"{len(found.of(verdict))} {verdict}" for verdict in Verdict)
    said = f"{counted(found.compared, 'incident')} compared: "
    said += f"{counts}" if found.drifts else "no drift"
    if found.stale:
        said += f"; {counted(len(found.stale), 'expectation')} not met"
    return said


def diff_markdown(found: Comparison) -> str:
    """A comparison as Markdown."""
    lines = [f"**{_summary(found)}**"]
    if found.drifts:
        lines += ["", "| incident | metric | old | new | verdict |", "|---|---|---|---|---|"]
        lines += [_row(drift) for drift in found.drifts]
    sections = (
        ("Only in the new one", found.added),
        ("Only in the old one", found.removed),
        ("Changed packs", [f"{name}: {', '.join(marks)}" for name, marks in found.marks.items()]),
        (
            "Settings",
            [f"{name}: {_shown(old)} -> {_shown(new)}" for name, (old, new) in found.settings.items()],
        ),
        (
            "Expected and not seen",
            [f"{one.incident}: {one.metric} {one.change} ({one.reason})" for one in found.stale],
        ),
    )
    for title, items in sections:
        if items:
            lines += ["", f"{title}:", "", *(f"- {_cell(item)}" for item in items)]
    return "\n".join(lines)


def _row(drift: Drift) -> str:
    verdict = str(drift.verdict) + (f": {drift.reason}" if drift.reason is not None else "")
    parts = (drift.incident, drift.metric, _shown(drift.old), _shown(drift.new), verdict)
    return f"| {' | '.join(map(_cell, parts))} |"


def _cell(text: str) -> str:
    line = visible(" ".join(text.split()))
    for special in "\\|<[`*_":
        line = line.replace(special, f"\\{special}")
    return line


def isolation_page(report: IsolationReport) -> str:
    """What run isolation changed, and whether it is explained."""
    shown = report.unexplained or list(report.drifts)
    lines: list[str] = []
    for (session_id, run_id), of_run in groupby(shown[:_SHOWN], key=lambda one: (one.session_id, one.run_id)):
        lines.append(wrapped(f"{one_line(session_id, WIDTH - 4)}, {run_id or 'no run'}", rest="  "))
        lines += map(_isolation_drift, of_run)
    if len(shown) > _SHOWN:
        lines.append(f"... and {len(shown) - _SHOWN} more: --json lists all")
    for session_id, said, had in report.misrecorded[:_SHOWN]:
        text = f"{session_id}: the old system noted {said.steps} steps and {said.tools} tool calls,"
        lines.append(wrapped(f"{text} and its rows were {had.steps} and {had.tools}", rest="  "))
    compared = f"{counted(report.sessions, 'session')}, {counted(report.runs, 'run')}"
    rows = f"{counted(report.all.steps, 'step')}, {counted(report.all.tools, 'tool call')}"
    left = len(report.unexplained)
    verdict = f"{left} NOT EXPLAINED" if left else "each explained to the row"
    drifts = f"{counted(len(report.drifts), 'drift')}, {verdict}" if report.drifts else "no drift"
    return "\n".join([*lines, *([""] if lines else []), wrapped(f"{compared}; {rows}: {drifts}", rest="  ")])


def _isolation_drift(drift: IsolationDrift) -> str:
    others = sum(drift.of_other_runs.values())
    parts = [f"{others} of {counted(len(drift.of_other_runs), 'other run')}"] if others else []
    parts += [f"{drift.of_no_run} in no run"] if drift.of_no_run else []
    said = f"{drift.kind}: session {drift.of_session}, run {drift.of_run}; difference {drift.difference}"
    said += f" = {' + '.join(parts)}" if parts else ""
    if not drift.is_explained:
        said += f", NOT EXPLAINED: {counted(drift.unexplained, 'row')}"
        said += f" (the run has {drift.rows_of_run})" if drift.of_run != drift.rows_of_run else ""
        said += f" ({drift.astray} of runs that are not there)" if drift.astray else ""
    return wrapped(said, "  ")


def captured_page(captured: Captured, out: str) -> str:
    """What became of a run's tool calls."""
    lines = [f"{counted(captured.calls, 'tool call')} kept in {out}"]
    kept = (
        ("left out, no lookup can stand for it: {}", captured.left_out),
        ("made before in the run, the first answer is kept: {}", captured.repeated),
        ("the record holds a part of the result only: {}", captured.truncated),
    )
    lines += [wrapped(text.format(", ".join(f"T{n}" for n in of)), rest="  ") for text, of in kept if of]
    if captured.facts:
        lines.append(
            f"{counted(captured.facts, 'fact')} filled in from the useful answer: see that they are right"
        )
    else:
        lines.append("now write its facts: what a good answer states")
    return "\n".join([lines[0], *lines[1:], f"edit {out}/incident.json"])


def captured_shape(captured: Captured) -> JsonObject:
    """The same as JSON."""
    return {
        "calls": captured.calls,
        "leftOut": list(captured.left_out),
        "repeated": list(captured.repeated),
        "truncated": list(captured.truncated),
        "facts": captured.facts,
    }
