"""A suite: a folder of incident packs."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from casenotes.adapters.evidence import Fact, Incident, evidence_digests, read_incident
from casenotes.core import rules
from casenotes.core.baseline.report import Unreadable
from casenotes.core.errors import InvalidEvidence, InvalidInput

HEAD = "incident.json"


@frozen
class SuiteIncident:
    """One pack of a suite, and what there is to look at in it."""

    path: Path
    incident: Incident
    evidence: dict[str, str]


@frozen
class Suite:
    """The packs by id, and the folders that are none."""

    incidents: tuple[SuiteIncident, ...]
    unreadable: tuple[Unreadable, ...]


def read_suite(path: Path) -> Suite:
    """The packs in the folders of ``path``; a folder that is a pack itself is a suite of one.

    Files and hidden folders are passed over. Raises ``InvalidEvidence`` when there is no folder to look into.
    """
    if not path.is_dir():
        raise InvalidEvidence(f"{path}: must be an existing folder of incident packs")
    found: dict[str, SuiteIncident] = {}
    unreadable: list[Unreadable] = []
    folders = [path] if (path / HEAD).exists() else _folders(path)
    if not folders:
        raise InvalidEvidence(f"{path}: holds no folder with an {HEAD}")
    for folder in folders:
        try:
            one = _read(folder)
            if (other := found.get(one.incident.id)) is not None:
                raise InvalidEvidence(f"{HEAD}: id: {one.incident.id} is that of {other.path.name} too")
            found[one.incident.id] = one
        except InvalidEvidence as error:
            unreadable.append(Unreadable(folder.resolve().name, str(error)))
    return Suite(tuple(found[name] for name in sorted(found)), tuple(unreadable))


def _folders(path: Path) -> list[Path]:
    try:
        return sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith("."))
    except OSError:
        raise InvalidEvidence(f"{path}: cannot be read") from None


def _read(folder: Path) -> SuiteIncident:
    incident = read_incident(folder)
    try:
        rules.check_question(incident.question)
    except InvalidInput as error:
        raise InvalidEvidence(f"{HEAD}: {error}") from None
    for kind, facts in (("facts", incident.facts), ("decoys", incident.decoys)):
        _check(kind, facts)
    return SuiteIncident(folder.resolve(), incident, evidence_digests(folder))


def _check(kind: str, facts: tuple[Fact, ...]) -> None:
    """Without a term every answer would state it; of two with one text only one could be told of."""
    seen: set[str] = set()
    for index, fact in enumerate(facts):
        if not fact.terms or any(not part for term in fact.terms for part in term.split("|")):
            raise InvalidEvidence(f"{HEAD}: {kind}[{index}].terms: must name what an answer says, none empty")
        if fact.text in seen:
            raise InvalidEvidence(f"{HEAD}: {kind}[{index}].text: is that of an earlier one too")
        seen.add(fact.text)
