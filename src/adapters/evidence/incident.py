"""``incident.json``: what happened, as a person would put it, and what a good answer states."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from casenotes.adapters.evidence.files import Folder, JsonFile
from casenotes.core.text import Json, JsonObject


@frozen
class Fact:
    """What a good answer states. It is stated when every term is in the answer, case aside; ``a|b`` is either."""

    text: str
    terms: tuple[str, ...]

    def stated_in(self, answer: str) -> bool:
        """Whether the answer states this fact."""
        low = answer.casefold()
        return all(any(part.casefold() in low for part in term.split("|")) for term in self.terms)


@frozen
class Incident:
    """The head of a pack. ``facts`` and ``decoys`` are for judging an answer; no evidence source holds them.

    ``decoys`` are what a good answer does not state: what lies near, and is wrong.
    """

    id: str
    source: str
    question: str
    alerts: tuple[JsonObject, ...]
    facts: tuple[Fact, ...]
    decoys: tuple[Fact, ...] = ()


def read_incident(path: Path) -> Incident:
    """The incident of the pack at ``path``. Raises ``InvalidEvidence`` naming file and field."""
    return incident_in(Folder(path))


def incident_in(folder: Folder) -> Incident:
    """As ``read_incident``, of an open folder."""
    file = folder.json("incident.json")
    head = file.object(file.value)
    return Incident(
        id=file.text(head.get("id"), "id"),
        source=file.text(head.get("source"), "source"),
        question=file.text(head.get("question"), "question"),
        alerts=tuple(
            _alert(file, alert, f"alerts[{index}]")
            for index, alert in enumerate(file.array(head.get("alerts"), "alerts"))
        ),
        facts=tuple(
            _fact(file, fact, f"facts[{index}]")
            for index, fact in enumerate(file.array(head.get("facts"), "facts"))
        ),
        decoys=tuple(
            _fact(file, fact, f"decoys[{index}]")
            for index, fact in enumerate(file.array(head.get("decoys", []), "decoys"))
        ),
    )


def _alert(file: JsonFile, value: Json, where: str) -> JsonObject:
    alert = file.object(value, where)
    labels = file.object(alert.get("labels"), f"{where}.labels")
    file.text(labels.get("alertname"), f"{where}.labels.alertname")
    file.object(alert.get("annotations", {}), f"{where}.annotations")
    return alert


def _fact(file: JsonFile, value: Json, where: str) -> Fact:
    fact = file.object(value, where)
    terms = file.array(fact.get("terms"), f"{where}.terms")
    return Fact(
        text=file.text(fact.get("text"), f"{where}.text"),
        terms=tuple(file.text(term, f"{where}.terms[{index}]") for index, term in enumerate(terms)),
    )
