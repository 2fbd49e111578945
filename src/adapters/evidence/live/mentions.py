"""Whom a run is about, as labels: what its alerts carry, and what its question names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from casenotes.core.text import JsonObject
from casenotes.ports.agent import About

WORKLOAD_LABELS = ("pod", "service", "app", "deployment", "statefulset", "daemonset", "job_name", "container")
MACHINE_LABELS = ("instance", "node", "job")
"""Labels whose value is the name of a thing, the most telling first."""

MAX_ALERTS = 12
"""Alerts of different names that lookups are offered for."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._:-]*[a-z0-9])?")
_WORD = re.compile(r"[a-z]{4,}")
_PART = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")
_NO_NAMES = frozenset({"the", "and", "why", "for", "are", "was", "has", "all", "any", "what", "when", "with"})


def labels_of(alert: JsonObject) -> dict[str, str]:
    """An alert's labels that are texts."""
    labels = alert.get("labels")
    pairs = labels.items() if isinstance(labels, dict) else ()
    return {name: value for name, value in pairs if isinstance(value, str) and value}


def by_name(alerts: Iterable[JsonObject]) -> dict[str, list[JsonObject]]:
    """The alerts that have a name, by it, in their order; not more than ``MAX_ALERTS`` names."""
    found: dict[str, list[JsonObject]] = {}
    for alert in alerts:
        name = labels_of(alert).get("alertname")
        if name and (name in found or len(found) < MAX_ALERTS):
            found.setdefault(name, []).append(alert)
    return found


def things_of(alert: JsonObject) -> list[tuple[str, str]]:
    """The labels of an alert that name what it is about: workloads, else machines."""
    labels = labels_of(alert)
    for names in (WORKLOAD_LABELS, MACHINE_LABELS):
        if found := [(name, labels[name]) for name in names if name in labels]:
            return found
    return []


def named_in(question: str, values: Iterable[str]) -> list[str]:
    """The values that a question names, whole or by their first part (``checkout`` for ``checkout-7d9f-x2x1z``)."""
    spoken = [word for word in _NAME.findall(question.casefold()) if len(word) > 2 and word not in _NO_NAMES]
    whole = [value for value in values if value.casefold() in spoken]
    parts = [value for value in values if any(value.casefold().startswith(word + "-") for word in spoken)]
    return list(dict.fromkeys([*whole, *parts]))


def words_of(about: About) -> frozenset[str]:
    """The words that a run is about: of the question, and of the names and descriptions of its alerts."""
    texts = [about.question]
    parts: list[str] = []
    for alert in about.alerts:
        parts += _PART.findall(labels_of(alert).get("alertname", ""))
        annotations = alert.get("annotations")
        texts += (
            [text for text in (annotations or {}).values() if isinstance(text, str)]
            if isinstance(annotations, dict)
            else []
        )
    words = [word for text in texts for word in _WORD.findall(text.casefold())]
    return frozenset(word.casefold().removesuffix("s") for word in (*words, *parts))


def earliest(alerts: Sequence[JsonObject]) -> str:
    """When the first of these alerts began; empty when they do not say."""
    return min((began for alert in alerts if isinstance(began := alert.get("startsAt"), str)), default="")
