"""What Prometheus holds that bears on a run: the rules of its alerts, and the metrics of what it is about."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from casenotes.adapters.evidence.live.mentions import (
    MACHINE_LABELS,
    WORKLOAD_LABELS,
    by_name,
    earliest,
    labels_of,
    named_in,
    things_of,
    words_of,
)
from casenotes.adapters.evidence.live.promql import matcher, measured
from casenotes.adapters.evidence.live.signals import Signal, signals_for
from casenotes.adapters.evidence.live.upstream import Fields, Unanswered, Upstream, data_of
from casenotes.adapters.evidence.live.windows import DEFAULT_MINUTES, minutes_since
from casenotes.core.text import Json, JsonObject
from casenotes.ports.agent import About
from casenotes.ports.ambient import Clock

MAX_THINGS = 6
"""Things of one run whose metrics are looked for."""

MAX_RULES = 2
"""Rules of one name that are taken: a warning and a critical one, say."""

_METRIC = re.compile(
    r"\b(?!(?:by|on|without|ignoring|group_left|group_right|offset|bool)\b)[a-z_:][a-z0-9_:]*\b(?!\s*\()",
    re.I,
)
_UNIT = re.compile(r"_(?:seconds|bytes|percent|total|ratio)(?=_|$)")
_TEXT = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|without|ignoring)\s*\([^)]*\)"
)


@frozen
class AlertRule:
    """An alert's rule: its expression, what that measures, by a name, and how long to look back."""

    name: str
    query: str
    measured: str
    metric: str
    minutes: int


@frozen
class Thing:
    """A label and its value."""

    label: str
    value: str


class Discovery:
    """Asks Prometheus what there is. What cannot be learnt is left out: the lookups themselves will say why."""

    def __init__(self, upstream: Upstream, now: Clock) -> None:
        self._upstream = upstream
        self._now = now

    async def rules(self, about: About) -> list[AlertRule]:
        """The rules of the alerts."""
        named = by_name(about.alerts)
        if not named:
            return []
        data = await self._ask("api/v1/rules", [("type", "alert")])
        rules = list(_alerting(data))
        found: list[AlertRule] = []
        for name, alerts in named.items():
            own = [rule for rule in rules if rule.get("name") == name]
            fitting = [rule for rule in own if _fits(rule, alerts)] or own
            queries = dict.fromkeys(query for rule in fitting if isinstance(query := rule.get("query"), str))
            minutes = minutes_since(earliest(alerts), self._now())
            found += [_rule(name, query, minutes) for query in list(queries)[:MAX_RULES]]
        return found

    async def signals(self, about: About) -> list[tuple[Thing, Signal]]:
        """The metrics of the things that the alerts and the question name."""
        asked = await self._asked(about.question)
        alerted = (
            _first(things_of(alert))
            for alert in about.alerts
            if not any(labels_of(alert).get(thing.label) == thing.value for thing in asked)
        )
        things = list(dict.fromkeys([*asked, *filter(None, alerted)]))[:MAX_THINGS]
        words = words_of(about)
        names = await asyncio.gather(*(self._names(thing) for thing in things))
        return [
            (thing, signal)
            for thing, there in zip(things, names, strict=True)
            for signal in signals_for(there, thing.label, thing.value, words)
        ]

    async def _asked(self, question: str) -> list[Thing]:
        """What the question names, of the values that labels have."""
        if not question.strip():
            return []
        labels = (*WORKLOAD_LABELS, *MACHINE_LABELS)
        lists = await asyncio.gather(*(self._values(label, self._recently()) for label in labels))
        found = (
            Thing(label, value)
            for label, values in zip(labels, lists, strict=True)
            for value in named_in(question, values)[:2]
        )
        return list({thing.value: thing for thing in reversed(list(found))}.values())[::-1]

    async def _names(self, thing: Thing) -> list[str]:
        match = ("match[]", "{" + matcher(thing.label, thing.value) + "}")
        return await self._values("__name__", [match, *self._recently()])

    async def _values(self, label: str, fields: Fields) -> list[str]:
        data = await self._ask(f"api/v1/label/{label}/values", fields)
        return [value for value in data if isinstance(value, str)] if isinstance(data, list) else []

    def _recently(self) -> Fields:
        now = self._now().timestamp()
        return [("start", f"{now - DEFAULT_MINUTES * 60:.0f}"), ("end", f"{now:.0f}")]

    async def _ask(self, path: str, fields: Fields) -> Json:
        try:
            return data_of(await self._upstream.get(path, fields), self._upstream.name)
        except Unanswered:
            return None


def _alerting(data: Json) -> Iterator[JsonObject]:
    groups = data.get("groups") if isinstance(data, dict) else None
    for group in groups if isinstance(groups, list) else []:
        rules = group.get("rules") if isinstance(group, dict) else None
        for rule in rules if isinstance(rules, list) else []:
            if isinstance(rule, dict) and rule.get("type") == "alerting":
                yield rule


def _fits(rule: JsonObject, alerts: Sequence[JsonObject]) -> bool:
    """Whether one of the alerts carries every label that the rule sets, templates aside."""
    wanted = [(name, value) for name, value in labels_of(rule).items() if "{{" not in value]
    return any(all(labels_of(alert).get(name) == value for name, value in wanted) for alert in alerts)


def _rule(name: str, query: str, minutes: int) -> AlertRule:
    what = measured(query)
    return AlertRule(name, query, what, metric_name(what) or f"expression of {name}", minutes)


def metric_name(expression: str) -> str:
    """A name for what an expression measures: that of its one metric; empty where it has none, or several.

    A name tells the unit, which a calculation changes: then its parts that do are left out.
    """
    plain = _TEXT.sub(" ", expression)
    names = {name for name in _METRIC.findall(plain) if name.casefold() not in ("inf", "nan")}
    if len(names) != 1:
        return ""
    name: str = names.pop()
    if plain.strip() == name or "histogram_quantile" in plain:
        return name.removesuffix("_bucket")
    return _UNIT.sub("", name) or name


def _first(things: Iterable[tuple[str, str]]) -> Thing | None:
    return next((Thing(label, value) for label, value in things), None)
