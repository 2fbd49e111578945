"""Values of now: of an alert's own expression, of targets that are scraped, of any other query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attrs import frozen

from casenotes.adapters.agents.findings import ranking
from casenotes.adapters.agents.findings.model import Finding, Kind, Role, code
from casenotes.adapters.agents.findings.owners import Owner, labels_of, owners
from casenotes.core.text import Json, JsonObject

MAX_VALUES = 5
"""Series of one answer that are told one by one."""


@frozen
class _Value:
    owner: Owner
    value: float


def is_vector(result: Mapping[str, Json]) -> bool:
    """Whether a result is the answer to an instant query."""
    data = result.get("data")
    return isinstance(data, dict) and data.get("resultType") == "vector"


def value_findings(arguments: JsonObject, result: Mapping[str, Json]) -> list[Finding]:
    """What the answer to an instant query shows."""
    values = _values(result)
    if arguments.get("metric") == "up":
        return _targets(values)
    alert, query = arguments.get("alertname"), str(arguments.get("query", ""))
    if isinstance(alert, str) and alert:
        opening = f"The expression of alert {code(alert)}, {code(query)}, is now"
        return _told(opening, alert, ranking.ALERT_VALUE, values)
    return _told(f"{code(query)} is now", "", ranking.VALUE, values)


def _told(opening: str, alert: str, weight: int, values: Sequence[_Value]) -> list[Finding]:
    found = []
    for value in values[:MAX_VALUES]:
        about = f" for {value.owner.told}" if value.owner.told else ""
        text = f"{opening} {shown(value.value)}{about}"
        found.append(Finding(Kind.VALUE, Role.CONTEXT, value.owner.subject, text, weight, alert=alert))
    if len(values) > MAX_VALUES:
        numbers = [value.value for value in values if math.isfinite(value.value)]
        spread = f", from {shown(min(numbers))} to {shown(max(numbers))}" if numbers else ""
        text = f"{opening} a number for {len(values)} series{spread}"
        found.append(Finding(Kind.VALUE, Role.CONTEXT, "", text, weight, alert=alert))
    return found


def shown(value: float) -> str:
    """A value as an answer shows it: whole numbers whole, others to six significant digits."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.6g}"


def _targets(values: Sequence[_Value]) -> list[Finding]:
    down = [value.owner for value in values if value.value == 0]
    if not down and values:
        number = len(values)
        text = f"{'All' if number > 1 else 'The'} {number} target{'s' * (number > 1)} seen can be scraped"
        return [Finding(Kind.METRIC, Role.CLEAR, "", text, ranking.CLEAR)]
    return [
        Finding(
            Kind.METRIC,
            Role.CAUSE,
            owner.subject,
            f"{owner.told or 'A target'} cannot be scraped: `up` is 0",
            ranking.TARGET_DOWN,
            action=f"see whether {owner.told or 'the target'} runs and can be reached",
        )
        for owner in down[:MAX_VALUES]
    ]


def _values(result: Mapping[str, Json]) -> list[_Value]:
    data = result.get("data")
    items = data.get("result") if isinstance(data, dict) else None
    listed = items if isinstance(items, list) else []
    named = owners([labels_of(item) for item in listed])
    found = []
    for item, owner in zip(listed, named, strict=True):
        match item:
            case {"value": [_, str() | int() | float() as number]}:
                try:
                    found.append(_Value(owner, float(number)))
                except (ValueError, OverflowError):
                    continue
    return found
