"""A recorded run as an incident pack: replaying the pack gives the tool results that the run had."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import define, field, frozen

from casenotes.adapters.evidence.calls import call_key
from casenotes.adapters.evidence.files import JsonFile
from casenotes.adapters.evidence.logs import LOGS_TOOL
from casenotes.adapters.evidence.metrics import METRICS_TOOL, matrices
from casenotes.adapters.evidence.pack import OWN_TOOLS, load_pack
from casenotes.adapters.evidence.prefilling import prefilled_facts
from casenotes.core.errors import InvalidEvidence, InvalidInput
from casenotes.core.model import DiagnosisRun, ToolInvocation
from casenotes.core.text import Json, JsonObject, bounded
from casenotes.core.views import RunTrace
from casenotes.core.words import StepStatus
from casenotes.ports.agent import ALERTS_TOOL, RUNBOOK_TOOL, Lookup, Observation, ObservationStatus

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:-]{0,100}")
"""Names that may stand for a part of the pack: none of them is more than a file of its folder."""


@frozen
class Captured:
    """What became of a run's tool calls. ``left_out``: sequences that no lookup can stand for.

    ``repeated``: those whose call was made before in the run; the first answer is kept. ``truncated``: those of which
    the record holds a part only. ``facts``: how many were filled in.
    """

    calls: int
    left_out: tuple[int, ...]
    repeated: tuple[int, ...]
    truncated: tuple[int, ...]
    facts: int


@define
class _Parts:
    """The pack's files by name, and the calls that they are to reproduce."""

    files: dict[str, str] = field(factory=dict)
    calls: dict[str, tuple[Lookup, ToolInvocation]] = field(factory=dict)
    alerts: list[Json] = field(factory=list)

    def put_json(self, name: str, value: Json) -> None:
        self.files[name] = json.dumps(value, ensure_ascii=False, indent=1) + "\n"


async def capture(trace: RunTrace, run: DiagnosisRun, path: Path) -> Captured:
    """Write the run as a pack into the new folder ``path``, all of it or nothing.

    Raises ``InvalidInput`` when ``path`` is there already or cannot be made, ``InvalidEvidence`` when the run is more
    than a pack can hold.
    """
    _refuse_if_there(path)
    parts, left_out, repeated = _Parts(), [], []
    for tool in trace.tool_invocations:
        lookup = _lookup(tool)
        if lookup is None:
            left_out.append(tool.sequence)
        elif parts.calls.setdefault(call_key(lookup), (lookup, tool))[1] is not tool:
            repeated.append(tool.sequence)
        else:
            _place(parts, lookup, tool)
    facts = prefilled_facts(trace)
    parts.put_json("incident.json", _head(path.name, trace, run, parts.alerts, facts))
    await _write(parts, path)
    truncated = tuple(tool.sequence for tool in trace.tool_invocations if tool.result_truncated)
    return Captured(len(parts.calls), tuple(left_out), tuple(repeated), truncated, len(facts))


def _refuse_if_there(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise InvalidInput("--out", f"{path} is there already; nothing was written")


def _lookup(tool: ToolInvocation) -> Lookup | None:
    if not tool.tool_name.strip() or not isinstance(tool.arguments, dict):
        return None
    return Lookup(tool.tool_name, tool.arguments)


def _head(
    name: str, trace: RunTrace, run: DiagnosisRun, alerts: list[Json], facts: Sequence[JsonObject]
) -> JsonObject:
    said = trace.feedback
    return {
        "id": name,
        "source": f"captured from {run.run_id} of session {run.session_id}",
        "question": run.query.strip() or "Diagnose the firing alerts",
        "alerts": alerts,
        "facts": [*facts],
        "decoys": [],
        "feedback": None if said is None else {"rating": said.rating, "comment": said.comment},
    }


def _place(parts: _Parts, lookup: Lookup, tool: ToolInvocation) -> None:
    """Put a call's result where a pack keeps its kind; what does not fit there stays for an exact call."""
    result, wanted = tool.result, lookup.arguments
    good = tool.status is StepStatus.SUCCESS
    match lookup.tool:
        case name if name not in OWN_TOOLS:
            answer = _as_recorded(lookup, tool)
            answer["result"] = tool.error_message if result is None and not good else result
            parts.put_json(_numbered("observations", tool), answer)
        case _ if not good or tool.result_truncated:
            return
        case str(name) if name == ALERTS_TOOL and isinstance(result, list) and all(map(_is_alert, result)):
            parts.alerts = result
        case str(name) if name == METRICS_TOOL and _is_named(wanted, "metric"):
            file = JsonFile(f"metrics/{wanted['metric']}.json", result)
            if _is_matrix(file):
                parts.put_json(file.name, result)
        case str(name) if name == LOGS_TOOL and isinstance(result, str):
            by = next((key for key in ("service", "file") if _is_named(wanted, key)), None)
            if by is not None:
                ending = "jsonl" if by == "service" else "log"
                parts.files.setdefault(f"logs/{wanted[by]}.{ending}", result.rstrip("\n") + "\n")
        case str(name) if name == RUNBOOK_TOOL and isinstance(result, str):
            stem = str(wanted["alertname"]) if _is_named(wanted, "alertname") else f"runbook-{tool.sequence}"
            if result not in parts.files.values():
                parts.files[f"runbooks/{stem}.md"] = result


def _is_named(wanted: Mapping[str, Json], key: str) -> bool:
    """Whether the only argument is this name, and a file may have it."""
    name = wanted.get(key)
    return wanted.keys() == {key} and isinstance(name, str) and _FILE_NAME.fullmatch(name) is not None


def _is_alert(value: Json) -> bool:
    labels = value.get("labels") if isinstance(value, dict) else None
    name = labels.get("alertname") if isinstance(labels, dict) else None
    return (
        isinstance(value, dict)
        and isinstance(name, str)
        and bool(name.strip())
        and isinstance(value.get("annotations", {}), dict)
    )


def _is_matrix(file: JsonFile) -> bool:
    try:
        matrices([file])
    except InvalidEvidence:
        return False
    return True


def _as_recorded(lookup: Lookup, tool: ToolInvocation) -> JsonObject:
    return {
        "tool": lookup.tool,
        "arguments": lookup.arguments,
        "status": _status(tool),
        "result": tool.result,
    }


def _status(tool: ToolInvocation) -> str:
    if tool.status is not StepStatus.SUCCESS:
        return ObservationStatus.ERROR
    return ObservationStatus.NO_DATA if tool.result in (None, "", [], {}) else ObservationStatus.SUCCESS


def _numbered(folder: str, tool: ToolInvocation) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", tool.tool_name)[:60].strip("._") or "call"
    return f"{folder}/{tool.sequence:02d}-{name}.json"


async def _write(parts: _Parts, path: Path) -> None:
    staging = path.parent / f".{path.name}.{os.getpid()}"
    try:
        staging.mkdir()
    except OSError:
        raise InvalidInput("--out", f"no folder can be made in {path.parent}") from None
    try:
        _store(parts.files, staging)
        strays = await _not_reproduced(staging, parts.calls.values())
        for lookup, tool in strays:
            parts.files.pop(_numbered("observations", tool), None)
            (staging / _numbered("observations", tool)).unlink(missing_ok=True)
            error = tool.error_message or "the call failed and said nothing"
            answer = _as_recorded(lookup, tool)
            parts.put_json(
                name := _numbered("calls", tool),
                {**answer, "error": error} if answer["status"] == ObservationStatus.ERROR else answer,
            )
            _store({name: parts.files[name]}, staging)
        if strays and (left := await _not_reproduced(staging, parts.calls.values())):
            raise InvalidEvidence(f"the result of call {left[0][1].sequence} cannot be kept in a pack")
        staging.rename(path)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _store(files: Mapping[str, str], folder: Path) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8", newline="")


async def _not_reproduced(
    folder: Path, calls: Iterable[tuple[Lookup, ToolInvocation]]
) -> list[tuple[Lookup, ToolInvocation]]:
    """The calls that the pack answers otherwise, or would not be asked: metrics and logs are looked up on offer."""
    pack = load_pack(folder)
    offered = await pack.offer()
    return [
        (lookup, tool)
        for lookup, tool in calls
        if not reproduces(await pack.look(lookup), tool)
        or (lookup.tool in (METRICS_TOOL, LOGS_TOOL) and lookup not in offered)
    ]


def reproduces(seen: Observation, tool: ToolInvocation) -> bool:
    """Whether an observation would be recorded as this tool call was."""
    failed = seen.status is ObservationStatus.ERROR
    if failed is not (tool.status is not StepStatus.SUCCESS):
        return False
    if failed and tool.error_message and seen.error_message != tool.error_message:
        return False
    return bounded(seen.result).value == tool.result
