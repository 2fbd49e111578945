"""Rows and models: one way between them, for every adapter that keeps rows.

A row is a dict by column name. Column names are field names, with these exceptions: a tool call's ``result`` is
text beside ``result_is_json``; ``step_number``, of the old system, is written for those who still read it; and
what old rows leave empty or say in other words is settled here, on reading.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from struct import Struct, error
from typing import Any, Final, TypeAlias, TypeVar

from attrs import fields, fields_dict, resolve_types
from cattrs import BaseValidationError, Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from casenotes.adapters.signatures import Signatures, copied, utc
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.model import (
    AgentStep,
    Case,
    ChatSession,
    DiagnosisRun,
    Feedback,
    HistoricalSession,
    IdempotencyKey,
    ToolInvocation,
)
from casenotes.core.rules import answer_preview
from casenotes.core.seal import EntryDigests, RunSeal
from casenotes.core.text import json_text
from casenotes.core.views import HistoricalTrace, RunSummary, Tombstone
from casenotes.core.words import CaseSource, RunStatus, StepStatus

Row: TypeAlias = dict[str, Any]
AnyRow: TypeAlias = Mapping[str, Any]
Model = TypeVar("Model")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_GOOD_OLD_WORDS: Final = frozenset({"SUCCESS", "SUCCEEDED", "COMPLETED", "FINISHED", "DONE", "OK"})

_ENDING: Final = (
    "status",
    "answer",
    "error_message",
    "self_evaluation",
    "orchestration_trace",
    "degraded",
    "step_count",
    "tool_call_count",
    "updated_at",
    "finished_at",
)
_LEASE: Final = ("lease_owner", "lease_expires_at")
_SEAL: Final = ("digest", "previous_digest", "chain_position", "entry_digests")

ENDING_COLUMNS: Final = (*_ENDING, *_LEASE, *_SEAL)
"""The columns of ``ending_row``."""


def to_row(model: object) -> Row:
    """The row of a model, without ``id``, which the store assigns. It shares nothing that can change.

    Raises ``ValueError`` for a naive time or a value of another type than its field's.
    """
    signatures = _SIGNATURES.get(type(model))
    row: Row = _converter.unstructure(model) if signatures is None else signatures.write(model)
    row.pop("id", None)
    return row


def from_row(model: type[Model], row: AnyRow, *, is_fresh: bool = False) -> Model:
    """The model of a row; columns it has no field for are ignored. It shares nothing that can change, unless the row
    is fresh: just read, and nobody else's.

    Raises ``LedgerUnavailable``, naming row and column, for a row that this version cannot read.
    """
    signatures = _SIGNATURES.get(model)
    try:
        return (
            _converter.structure(row, model)
            if signatures is None
            else signatures.read(row, is_fresh=is_fresh)
        )
    except (BaseValidationError, ValueError) as error:
        where = f"{model.__name__} row {row.get('id', row.get('session_id'))}"
        raise LedgerUnavailable(f"{where} cannot be read: {_broken_columns(error)}") from None


def ending_row(run: DiagnosisRun, seal: RunSeal) -> Row:
    """The columns that the end of a run writes. Raises ``ValueError`` for a run that has not ended."""
    if run.status is RunStatus.RUNNING:
        raise ValueError("a run ends as SUCCESS or FAILED, not as RUNNING")
    row = to_row(run)
    ending = {name: row[name] for name in _ENDING} | dict.fromkeys(_LEASE)
    return ending | {
        "digest": seal.digest,
        "previous_digest": seal.previous,
        "chain_position": seal.position,
        "entry_digests": _packed(seal.steps, seal.tools),
    }


def run_seal(row: AnyRow) -> RunSeal | None:
    """The seal that a run's row holds, ``None`` if it holds none. Raises ``ValueError`` when it is in pieces."""
    columns = [row[name] for name in ("digest", "chain_position", "entry_digests")]
    if not any(value is not None for value in columns):
        return None
    digest, position, packed = columns
    if not (isinstance(digest, str) and isinstance(position, int) and isinstance(packed, bytes)):
        raise ValueError("a seal's columns are filled in part")
    steps, tools = _unpacked(packed)
    return RunSeal(position, row["previous_digest"], steps, tools, digest)


_NUMBER_OF_STEPS: Final = Struct(">I")
_ENTRY: Final = Struct(">i32s")


def _packed(steps: EntryDigests, tools: EntryDigests) -> bytes:
    """How many steps there are, then each step's sequence and digest, then each tool call's."""
    entries = (*sorted(steps.items()), *sorted(tools.items()))
    packed = (_ENTRY.pack(sequence, bytes.fromhex(digest)) for sequence, digest in entries)
    return b"".join((_NUMBER_OF_STEPS.pack(len(steps)), *packed))


def _unpacked(packed: bytes) -> tuple[dict[int, str], dict[int, str]]:
    try:
        (number,) = _NUMBER_OF_STEPS.unpack_from(packed)
        entries = [(n, digest.hex()) for n, digest in _ENTRY.iter_unpack(packed[_NUMBER_OF_STEPS.size :])]
    except error:
        raise ValueError("a seal's entries are cut") from None
    return dict(entries[:number]), dict(entries[number:])


def feedback_row(feedback: Feedback) -> Row:
    """The columns that a feedback writes to a run, ``updated_at`` aside."""
    at = feedback.updated_at
    return {
        "feedback": feedback.rating,
        "feedback_comment": feedback.comment,
        "feedback_at": None if at is None else utc(at),
    }


def automatic_case_row(case: Case) -> Row:
    """The row of an automatic case. Raises ``ValueError`` for a case from elsewhere."""
    if case.source is not CaseSource.AUTO:
        raise ValueError("only an automatic case is stored by its run")
    return to_row(case)


def run_summary(row: AnyRow, answer: str | None) -> RunSummary:
    """The summary of a run's row. Of ``answer``, enough for the preview will do."""
    return from_row(RunSummary, {**row, "answer_preview": answer_preview(answer)})


def historical_trace(
    session: AnyRow, step_rows: Sequence[AnyRow], tool_rows: Sequence[AnyRow]
) -> HistoricalTrace:
    """A historical session with its rows that belong to no run, in old order: by step number, then id.

    They are numbered from 1 as a run's would be, and a tool call points at the first step of its step number.
    """
    steps = sorted(step_rows, key=_old_order)
    tools = sorted(tool_rows, key=_old_order)
    sequences: dict[int | None, int] = {}
    for sequence, row in enumerate(steps, 1):
        sequences.setdefault(row["step_number"], sequence)
    sequences.pop(None, None)
    return HistoricalTrace(
        session=from_row(HistoricalSession, session),
        agent_steps=tuple(
            from_row(AgentStep, {**row, "sequence": sequence}) for sequence, row in enumerate(steps, 1)
        ),
        tool_invocations=tuple(
            from_row(
                ToolInvocation,
                {**row, "sequence": sequence, "step_sequence": sequences.get(row["step_number"])},
            )
            for sequence, row in enumerate(tools, 1)
        ),
    )


def _old_order(row: AnyRow) -> tuple[bool, int, int]:
    number = row["step_number"]
    return number is None, number or 0, row["id"]


def _broken_columns(error: Exception) -> str:
    if not isinstance(error, BaseValidationError):
        return "a value of the wrong type"
    known = (
        getattr(note, "name", None) for one in error.exceptions for note in getattr(one, "__notes__", ())
    )
    return ", ".join(sorted({name for name in known if name})) or "a value is missing"


def _exactly(kind: type) -> Callable[[Any, object], Any]:
    """A structure hook that takes a value of this type and coerces none: ``str([1])`` would be a lie."""

    def hook(value: Any, _: object) -> Any:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ValueError(f"not {kind.__name__}")
        return value

    return hook


def _plain(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("not str")
    return str.__str__(value)  # of an enum's member the word, not the member


def _step_status(word: str | None, error_message: str | None) -> str:
    if word is None:
        return StepStatus.SUCCESS if error_message is None else StepStatus.FAILED
    return StepStatus.SUCCESS if word.strip().upper() in _GOOD_OLD_WORDS else StepStatus.FAILED


def _settled(row: AnyRow) -> Row:
    """A step's or tool call's row, with what old rows leave empty filled in."""
    sequence = row.get("sequence")
    return {
        **row,
        **_times(row),
        "run_id": row.get("run_id") or "",
        "sequence": (row.get("step_number") or 0) if sequence is None else sequence,
        "status": _step_status(row.get("status"), row.get("error_message")),
    }


def _settled_step(row: AnyRow) -> Row:
    settled = _settled(row)
    return settled | {name: settled.get(name) or "" for name in ("agent_name", "step_type")}


def _settled_tool(row: AnyRow) -> Row:
    settled = _settled(row)
    result = settled.get("result")
    settled["tool_name"] = settled.get("tool_name") or ""
    settled["result"] = json.loads(result) if result is not None and settled["result_is_json"] else result
    return settled


def _settled_case(row: AnyRow) -> Row:
    return {**row, **_times(row), "query": row.get("query") or "", "answer": row.get("answer") or ""}


def _settled_historical(row: AnyRow) -> Row:
    return {**row, **_times(row)}


def _times(row: AnyRow) -> Row:
    """When the row was made and last changed; where it tells neither, the start of 1970."""
    made, changed = row.get("created_at"), row.get("updated_at")
    return {"created_at": made or changed or _EPOCH, "updated_at": changed or made or _EPOCH}


def _step_row(row: Row) -> Row:
    row["step_number"] = row["sequence"]
    return row


def _tool_row(row: Row) -> Row:
    result = row["result"]
    row["step_number"] = row["step_sequence"]
    row["result_is_json"] = result is not None and not isinstance(result, str)
    row["result"] = json_text(result) if row["result_is_json"] else result
    return row


_JSON_FIELDS: Final = frozenset({"self_evaluation", "orchestration_trace", "arguments", "result"})
_JSON = override(struct_hook=lambda value, _: copied(value), unstruct_hook=copied)


def _register(
    converter: Converter,
    model: type[Any],
    *,
    reading: Callable[[AnyRow], Row] | None = None,
    writing: Callable[[Row], Row] | None = None,
) -> None:
    overrides: dict[str, Any] = {name: _JSON for name in fields_dict(model) if name in _JSON_FIELDS}
    structure = make_dict_structure_fn(model, converter, **overrides)
    unstructure = make_dict_unstructure_fn(model, converter, **overrides)
    converter.register_structure_hook(
        model, structure if reading is None else lambda row, kind: structure(reading(row), kind)
    )
    converter.register_unstructure_hook(
        model, unstructure if writing is None else lambda value: writing(unstructure(value))
    )


def _make_converter() -> Converter:
    converter = Converter()
    for kind in (str, int, bool, datetime):
        converter.register_structure_hook(kind, _exactly(kind))
    converter.register_structure_hook(StrEnum, lambda word, kind: kind(word))  # else str's hook would do
    converter.register_unstructure_hook(str, _plain)
    converter.register_unstructure_hook(datetime, utc)
    for model in (ChatSession, DiagnosisRun, IdempotencyKey, RunSummary, Tombstone):
        _register(converter, model)
    _register(converter, HistoricalSession, reading=_settled_historical)
    _register(converter, AgentStep, reading=_settled_step, writing=_step_row)
    _register(converter, ToolInvocation, reading=_settled_tool, writing=_tool_row)
    _register(converter, Case, reading=_settled_case)
    return converter


_converter: Final = _make_converter()


def _settle_tool(row: AnyRow, values: list[Any], places: Mapping[str, int]) -> None:
    if row["result_is_json"] and row["result"] is not None:
        values[places["result"]] = json.loads(row["result"])


def _signatures(model: type[Any], **further: Any) -> Signatures[Any]:
    words = {one.name: one.type for one in fields(resolve_types(model)) if _is_word(one.type)}
    return Signatures(
        model, lambda row: _converter.structure(row, model), _converter.unstructure, words, **further
    )


def _is_word(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, StrEnum)


_SIGNATURES: Final[Mapping[type, Signatures[Any]]] = {
    AgentStep: _signatures(AgentStep, complete=_step_row),
    ToolInvocation: _signatures(ToolInvocation, settle=_settle_tool, complete=_tool_row),
    **{model: _signatures(model) for model in (DiagnosisRun, ChatSession, Case, RunSummary, IdempotencyKey)},
}
