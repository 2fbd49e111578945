"""Answers of single calls, exactly as they were recorded, whatever the tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from casenotes.adapters.evidence.files import JsonFile
from casenotes.core.text import JsonObject, json_text
from casenotes.ports.agent import Lookup, Observation, ObservationStatus


class ExactCalls:
    """Calls with the answers that they got. The first of several answers to one call counts."""

    def __init__(self, calls: Sequence[tuple[Lookup, Observation]]) -> None:
        self._answers: Mapping[str, Observation] = {
            call_key(lookup): answer for lookup, answer in reversed(calls)
        }
        self.lookups = tuple(lookup for lookup, _ in calls)
        self.tools = frozenset(lookup.tool for lookup in self.lookups)

    def get(self, lookup: Lookup) -> Observation | None:
        """The answer to exactly this call, if it was recorded."""
        return self._answers.get(call_key(lookup))


def exact_calls(files: Iterable[JsonFile]) -> ExactCalls:
    """The calls of these files, ``{tool, arguments, status, result, error}`` each. Raises ``InvalidEvidence``."""
    return ExactCalls([_call(file) for file in files])


def _call(file: JsonFile) -> tuple[Lookup, Observation]:
    head = file.object(file.value)
    lookup = Lookup(file.text(head.get("tool"), "tool"), file.object(head.get("arguments"), "arguments"))
    status, error = head.get("status"), head.get("error")
    if status not in [str(known) for known in ObservationStatus]:
        raise file.fail("status", f"must be one of {', '.join(ObservationStatus)}")
    if "result" not in head:
        raise file.fail("result", "missing")
    became = ObservationStatus(str(status))
    if became is ObservationStatus.ERROR:
        return lookup, Observation(became, head["result"], file.text(error, "error"))
    return lookup, Observation(became, head["result"])


def call_key(lookup: Lookup) -> str:
    """One text for one call: tool and arguments, in whatever order these were given."""
    arguments: JsonObject = dict(sorted(lookup.arguments.items()))
    return lookup.tool + json_text(arguments)
