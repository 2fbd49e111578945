"""Whom series are of, and how a sentence names each so that two of one owner are told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import frozen

from casenotes.adapters.agents.findings.model import code
from casenotes.adapters.agents.findings.names import MACHINE_JOBS
from casenotes.core.text import Json

_OWNER_LABELS = ("pod", "service", "deployment", "statefulset", "container", "app", "job", "node", "instance")
_TELLING_APART = ("instance", "node", "pod", "container", "mountpoint", "device", "alertname")
_NEVER_TOLD = frozenset({"__name__", "le"})

MAX_TOLD = 2
"""Labels that are named besides the owner, at the most."""


@frozen
class Owner:
    """Whom a series is of (empty when its labels do not say), and how a sentence names it."""

    subject: str
    told: str


def owners(series: Sequence[Mapping[str, Json]]) -> list[Owner]:
    """The owner of each series by its labels; those of one owner get the labels that tell them apart."""
    named = [_subject(labels) for labels in series]
    told = [
        _told(subject, labels, [other for name, other in zip(named, series, strict=True) if name == subject])
        for subject, labels in zip(named, series, strict=True)
    ]
    times: Counter[str] = Counter()
    found = []
    for subject, words in zip(named, told, strict=True):
        times[words] += 1
        found.append(Owner(subject, words if times[words] == 1 else f"{words} #{times[words]}".strip()))
    return found


def labels_of(item: Json) -> Mapping[str, Json]:
    """The labels of a series of Prometheus."""
    labels = item.get("metric") if isinstance(item, dict) else None
    return labels if isinstance(labels, dict) else {}


def _subject(labels: Mapping[str, Json]) -> str:
    values = ((label, str(labels[label])) for label in _OWNER_LABELS if labels.get(label))
    machine = bool(labels.get("instance"))
    named = (value for label, value in values if not (machine and label == "job" and value in MACHINE_JOBS))
    return next(named, "")


def _told(subject: str, labels: Mapping[str, Json], alike: Sequence[Mapping[str, Json]]) -> str:
    who = code(subject) if subject else ""
    if len(alike) < 2:
        return who
    differing = [
        name
        for name in sorted(labels, key=_place)
        if name not in _NEVER_TOLD and any(other.get(name) != labels[name] for other in alike)
    ]
    more = ", ".join(f"{name} {code(str(labels[name]), 80)}" for name in differing[:MAX_TOLD])
    return f"{who} ({more})" if who and more else more or who


def _place(label: str) -> tuple[int, str]:
    known = _TELLING_APART.index(label) if label in _TELLING_APART else len(_TELLING_APART)
    return known, label
