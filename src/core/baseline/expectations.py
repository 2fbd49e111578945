"""Drifts that somebody expected: named, with a reason, in a file that is itself checked."""

from __future__ import annotations

from attrs import frozen

from casenotes.core.baseline.reading import Part
from casenotes.core.text import Json, JsonObject


@frozen
class Expectation:
    """A drift of one metric of one incident, in one direction, and why it is right."""

    incident: str
    metric: str
    improved: bool
    reason: str

    @property
    def change(self) -> str:
        return "improved" if self.improved else "regressed"

    def as_json(self) -> JsonObject:
        return {
            "incident": self.incident,
            "metric": self.metric,
            "change": self.change,
            "reason": self.reason,
        }


def expectations_from(value: Json) -> tuple[Expectation, ...]:
    """``{"expected": [{"incident", "metric", "change": "regressed"|"improved", "reason"}]}``.

    Raises ``InvalidBaseline`` naming the field; for one that is there twice, too.
    """
    head = Part(value)
    head.only("expected")
    found: list[Expectation] = []
    for item in head["expected"].items():
        item.only("incident", "metric", "change", "reason")
        if item["change"].value not in ("regressed", "improved"):
            raise item["change"].wrong("regressed or improved")
        one = Expectation(
            item["incident"].said(),
            item["metric"].said(),
            item["change"].value == "improved",
            item["reason"].said(),
        )
        if any(
            (other.incident, other.metric, other.change) == (one.incident, one.metric, one.change)
            for other in found
        ):
            raise item.wrong("the only one of its incident, metric and change")
        found.append(one)
    return tuple(found)
