"""The evidence as a model is shown it: every call with its number, bounded, and marked as data."""

from __future__ import annotations

from collections.abc import Sequence

from casenotes.adapters.agents.looking import Call, describe
from casenotes.core.text import LIMIT_BYTES, bounded, fold, json_text
from casenotes.ports.agent import ObservationStatus

MAX_CHARS = 24_000
"""Characters of evidence in one prompt."""

_MAX_RAW, _LEAST_RAW = 4_000, 200
_MAX_FINDINGS = 12


def shown(calls: Sequence[Call]) -> str:
    """The calls, each with what came back: its findings by fixed rules first, then as much of it as there is room for.

    The room left by short results goes to the longer ones.
    """
    if not calls:
        return "No lookup was made."
    heads = {call.number: _head(call) for call in calls}
    room = MAX_CHARS - sum(map(len, heads.values()))
    raws = {call.number: _raw(call) for call in calls}
    parts: dict[int, str] = {}
    for left, number in enumerate(sorted(raws, key=lambda each: len(raws[each]))):
        share = min(_MAX_RAW, max(_LEAST_RAW, room // (len(raws) - left)))
        raw = raws[number]
        kept = raw if len(raw) <= share else f"{raw[:share]}\n[cut: {len(raw) - share} more characters]"
        room -= len(kept)
        parts[number] = heads[number] + (f"<result>\n{kept}\n</result>\n" if kept else "")
    text = "\n".join(parts[call.number] for call in calls)
    return text if len(text) <= 2 * MAX_CHARS else text[: 2 * MAX_CHARS] + "\n[cut]"


def _head(call: Call) -> str:
    lines = [f"{call.cite} {fold(describe(call.lookup), 300)}"]
    if call.failed:
        lines.append(f"This lookup failed: {fold(call.failed, 300)}")
    elif call.empty:
        lines.append("There was nothing to see.")
    if call.observation.left_out:
        lines.append(f"Not all of it was read: {fold(call.observation.left_out, 300)}")
    findings = [fold(finding.text, 400) for finding in call.reading.findings][:_MAX_FINDINGS]
    if findings:
        lines += ["Read out of it by fixed rules:", *(f"- {text}" for text in findings)]
    return _marked("\n".join(lines) + "\n")


def _raw(call: Call) -> str:
    if call.observation.status is not ObservationStatus.SUCCESS:
        return ""
    value = bounded(call.observation.result, LIMIT_BYTES).value
    if value is None:
        return ""
    text = value if isinstance(value, str) else json_text(value)
    return _marked(text)


def _marked(text: str) -> str:
    """Text of the evidence, which can neither begin nor end a result."""
    return text.replace("<result>", "< result>").replace("</result>", "< /result>")
