"""Recorded tool calls and alerts, answered again as they were recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from casenotes.adapters.evidence.files import JsonFile
from casenotes.core.text import Json, JsonObject, clean, fold, json_text
from casenotes.ports.agent import ALERTS_TOOL, Lookup, Observation, ObservationStatus

RECORDING = "recording"
"""The argument that tells later recordings of one call from the first, whose arguments are as recorded."""

_MAX_ERROR_CHARS = 300


class RecordedSource:
    """Tool calls with their recorded answers, each under its own tool and arguments."""

    def __init__(self, recordings: Sequence[tuple[Lookup, Observation]]) -> None:
        self._offer = tuple(lookup for lookup, _ in recordings)
        self._answers: Mapping[str, Observation] = {_key(lookup): answer for lookup, answer in recordings}

    @property
    def tools(self) -> frozenset[str]:
        """The recorded tools."""
        return frozenset(lookup.tool for lookup in self._offer)

    async def offer(self) -> Sequence[Lookup]:
        """Every recorded call, in the order of the recording."""
        return self._offer

    async def look(self, lookup: Lookup) -> Observation:
        """What was recorded for exactly these arguments."""
        if lookup.tool not in self.tools:
            return unknown_tool(lookup)
        return self._answers.get(_key(lookup), Observation(ObservationStatus.NO_DATA))


class AlertsSource:
    """The alerts that a pack says are firing."""

    tools = frozenset({ALERTS_TOOL})

    def __init__(self, alerts: Sequence[JsonObject]) -> None:
        self._alerts = tuple(alerts)

    async def offer(self) -> Sequence[Lookup]:
        """The one lookup."""
        return (Lookup(ALERTS_TOOL),)

    async def look(self, lookup: Lookup) -> Observation:
        """The alerts, as a list; an empty list is an answer too: nothing fires."""
        if lookup.tool != ALERTS_TOOL:
            return unknown_tool(lookup)
        return Observation(ObservationStatus.SUCCESS, list(self._alerts))


def recordings(
    files: Iterable[JsonFile], taken: frozenset[str] = frozenset()
) -> list[tuple[Lookup, Observation]]:
    """The recorded calls of these files, distinguishable from each other.

    Two recordings of one call that say the same are one. Where they differ, the later ones get the argument
    ``recording`` (2, 3, ...), so that each can be reached. Raises ``InvalidEvidence``, for a tool that is ``taken``
    too.
    """
    kept: list[tuple[Lookup, Observation]] = []
    of_call: dict[str, list[Observation]] = {}
    for file in files:
        lookup, answer = _recording(file)
        if lookup.tool in taken:
            raise file.fail("tool", f"must not be {lookup.tool}, which a pack answers from its other parts")
        earlier = of_call.setdefault(_key(lookup), [])
        if answer in earlier:
            continue
        earlier.append(answer)
        if len(earlier) > 1:
            lookup = Lookup(lookup.tool, {**lookup.arguments, RECORDING: len(earlier)})
        kept.append((lookup, answer))
    return kept


def _recording(file: JsonFile) -> tuple[Lookup, Observation]:
    head = file.object(file.value)
    lookup = Lookup(
        file.text(head.get("tool"), "tool"),
        file.object(head.get("arguments"), "arguments"),
    )
    status = head.get("status")
    if status not in [str(known) for known in ObservationStatus]:
        raise file.fail("status", f"must be one of {', '.join(ObservationStatus)}")
    if "result" not in head:
        raise file.fail("result", "missing")
    result = head["result"]
    became = ObservationStatus(str(status))
    if became is ObservationStatus.SUCCESS and result in (None, "", [], {}):
        became = ObservationStatus.NO_DATA
    return lookup, Observation(
        became, result, _first_line(result) if became is ObservationStatus.ERROR else None
    )


def _first_line(result: Json) -> str:
    text = result if isinstance(result, str) else json_text(result)
    line = next((line for line in text.splitlines() if line.strip()), "")
    return clean(fold(line, _MAX_ERROR_CHARS)) if line else "the call failed and said nothing"


def unknown_tool(lookup: Lookup) -> Observation:
    """The answer to a tool that a source does not have."""
    return Observation(ObservationStatus.ERROR, error_message=f"unknown tool: {fold(lookup.tool, 80)}")


def _key(lookup: Lookup) -> str:
    arguments: JsonObject = dict(sorted(lookup.arguments.items()))
    return lookup.tool + json_text(arguments)
