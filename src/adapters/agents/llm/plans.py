"""A plan as a model gives it: numbers of a list of lookups, so that it can choose nothing that was not offered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from casenotes.adapters.agents.llm import failure
from casenotes.adapters.agents.llm.failure import ModelFailed
from casenotes.adapters.agents.llm.wire import Shape
from casenotes.adapters.agents.looking import describe
from casenotes.core.text import Json, fold
from casenotes.ports.agent import Lookup

MAX_OFFERED = 80
"""Lookups that a model is shown, the most telling first."""

_MAX_TRIES = 40
_MAX_REASON = 600

PLAN = Shape(
    "look_at",
    {
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": "why these, in one or two sentences"},
            "lookups": {"type": "array", "items": {"type": "integer"}, "description": "numbers of the list"},
        },
        "required": ["reason", "lookups"],
        "additionalProperties": False,
    },
)


@frozen
class Plan:
    """The lookups chosen, each once, in the model's order, and its words on why."""

    lookups: list[Lookup]
    reason: str


def numbered(offered: Sequence[Lookup]) -> str:
    """The list to choose from."""
    return "\n".join(f"{number}. {fold(describe(lookup), 300)}" for number, lookup in enumerate(offered, 1))


def read_plan(text: str, offered: Sequence[Lookup]) -> Plan:
    """The plan in a model's answer: JSON alone, or somewhere in its words. Raises ``ModelFailed``."""
    for found in _objects(text):
        if isinstance(found, dict) and isinstance(found.get("lookups"), list):
            return _plan(found, offered)
    raise ModelFailed(failure.NO_PLAN)


def _plan(found: dict[str, Json], offered: Sequence[Lookup]) -> Plan:
    given = found["lookups"]
    assert isinstance(given, list)
    numbers = dict.fromkeys(number for item in given if (number := _number(item)) is not None)
    chosen = [offered[number - 1] for number in numbers if 1 <= number <= len(offered)]
    if given and not chosen:
        raise ModelFailed(failure.NO_PLAN)
    reason = found.get("reason")
    return Plan(chosen, fold(reason, _MAX_REASON) if isinstance(reason, str) else "")


def _number(item: Json) -> int | None:
    if isinstance(item, str) and re.fullmatch(r"\s*[0-9]{1,6}\s*", item):
        return int(item)
    return item if isinstance(item, int) and not isinstance(item, bool) else None


def _objects(text: str) -> Iterator[Json]:
    """What can be read as JSON from each brace on, after what was thought aloud."""
    said = text.rpartition("</think>")[2]
    decoder = json.JSONDecoder()
    for begin in [match.start() for match in re.finditer(r"\{", said)][:_MAX_TRIES]:
        try:
            yield decoder.raw_decode(said, begin)[0]
        except (ValueError, RecursionError):
            continue
