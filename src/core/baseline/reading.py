"""Reading a baseline's JSON back: strict, and an error names the field."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from casenotes.core.baseline.report import (
    FORMAT,
    BaselineReport,
    IncidentResult,
    InvalidBaseline,
    Judged,
    Measures,
    Unreadable,
)
from casenotes.core.text import Json


@frozen
class Part:
    """A value within a JSON file, and where it stands; gives its fields by type, or says which one is wrong."""

    value: Json
    where: str = ""

    def __getitem__(self, name: str) -> Part:
        """A field of this object. A missing one is ``None``."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return Part(self.value.get(name), f"{self.where}.{name}" if self.where else name)

    def wrong(self, wanted: str) -> InvalidBaseline:
        return InvalidBaseline(f"{self.where}: must be {wanted}" if self.where else f"must be {wanted}")

    def only(self, *names: str) -> None:
        """Refuse fields of other names."""
        unknown = sorted(self.fields().keys() - set(names))
        if unknown:
            raise self[unknown[0]].wrong(f"left out; known are {', '.join(names)}")

    def items(self) -> list[Part]:
        if not isinstance(self.value, list):
            raise self.wrong("an array")
        return [Part(item, f"{self.where}[{index}]") for index, item in enumerate(self.value)]

    def fields(self) -> dict[str, Part]:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return {name: self[name] for name in self.value}

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("text")
        return self.value

    def said(self) -> str:
        """Text with something in it."""
        if not self.text().strip():
            raise self.wrong("text, and not blank")
        return self.text()

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def count(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 0:
            raise self.wrong("a whole number, not below 0")
        return self.value


def report_from(value: Json) -> BaselineReport:
    """The baseline of this JSON, as ``BaselineReport.as_json`` gives it. Raises ``InvalidBaseline``."""
    head = Part(value)
    if head["format"].value != FORMAT:
        raise head["format"].wrong(f"{FORMAT}: is this a file of casenotes baseline run?")
    incidents = tuple(_incident(item) for item in head["incidents"].items())
    seen: set[str] = set()
    for part, one in zip(head["incidents"].items(), incidents, strict=True):
        if one.id in seen:
            raise part["id"].wrong(f"the only one of its name: {one.id} is there twice")
        seen.add(one.id)
    return BaselineReport(
        version=head["casenotes"].text(),
        created_at=head["createdAt"].text(),
        settings={name: part.value for name, part in head["settings"].fields().items()},
        incidents=incidents,
        unreadable=tuple(
            Unreadable(item["folder"].text(), item["reason"].text()) for item in head["unreadable"].items()
        ),
    )


def _incident(part: Part) -> IncidentResult:
    error = part["error"]
    return IncidentResult(
        id=part["id"].said(),
        folder=part["folder"].text(),
        question=part["question"].text(),
        flow=part["flow"].text(),
        evidence={name: digest.text() for name, digest in part["evidence"].fields().items()},
        facts=tuple(map(_judged, part["facts"].items())),
        decoys=tuple(map(_judged, part["decoys"].items())),
        error=None if error.value is None else error.text(),
        measures=_measures(part),
        session_id=part["sessionId"].text(),
        run_id=part["runId"].text(),
        started_at=part["startedAt"].text(),
    )


def _judged(part: Part) -> Judged:
    return Judged(
        part["text"].text(), tuple(term.text() for term in part["terms"].items()), part["stated"].flag()
    )


def _measures(part: Part) -> Measures:
    citations, statements = part["citations"], part["statements"]
    tools, tokens = part["tools"], part["tokens"]
    rules: Mapping[str, bool] = {name: held.flag() for name, held in part["rules"].fields().items()}
    return Measures(
        degraded=part["degraded"].flag(),
        citations_valid=citations["valid"].flag(),
        cited=citations["cited"].count(),
        unsupported=citations["unsupported"].count(),
        statements=statements["all"].count(),
        uncited=statements["uncited"].count(),
        rules=rules,
        steps=part["steps"].count(),
        tools=tools["all"].count(),
        failed_tools=tools["failed"].count(),
        input_tokens=tokens["input"].count(),
        output_tokens=tokens["output"].count(),
        answer_chars=part["answerChars"].count(),
        duration_ms=part["durationMs"].count(),
    )
