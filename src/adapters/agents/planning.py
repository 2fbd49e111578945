"""Which lookups to make, in which order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from attrs import frozen

from casenotes.adapters.agents.alerts import Alert
from casenotes.adapters.agents.findings.extract import subject_of
from casenotes.adapters.agents.findings.names import owner_of, same_thing
from casenotes.adapters.agents.focus import Focus, Topic
from casenotes.core.text import json_text
from casenotes.ports.agent import ALERTS_TOOL, RUNBOOK_TOOL, Lookup

ON_SUBJECT = 50
ON_LINKED = 45
ABOUT_NOBODY = 12
OFF_SUBJECT = -40
ASKED_FOR = 30
ON_ALERT = 80
"""For the expression of an alert near the question: nothing says more exactly why it fires."""
SAME_WORDS = 6
SAME_NAMESPACE = 5
REPEATED = 9
"""Taken off for each earlier choice of the same tool for the same owner: five pods of one job say the same."""

USEFUL = 15
"""From here on a lookup is worth making at first."""
POSSIBLE = -10
"""From here on a lookup is worth making when the first ones showed too little."""

NOT_ASKED_FOR = -2000
"""Never looked at: the question asks for another kind of evidence, and for nothing else."""

ANYTHING = -1000
"""From here on anything is looked at."""

_TOOLS = (
    (r"previous", 7),
    (r"change|history|rollout|diff|deploy", 24),
    (r"describe", 22),
    (r"finding|issue|incident", 21),
    (r"event", 18),
    (r"log", 19),
    (r"metric|query|prom", 20),
    (r"runbook|playbook|webpage|wiki|doc", 16),
    (r"lineage|yaml|json", 9),
    (r"get|find|list|top", 11),
)
_TOPIC_TOOLS = {
    Topic.LOGS: r"log",
    Topic.METRICS: r"metric|query|prom|top",
    Topic.RUNBOOK: r"runbook|webpage",
    Topic.ALERTS: r"alert",
    Topic.EVENTS: r"event|describe",
    Topic.CHANGES: r"change|history|rollout|diff|deploy",
    Topic.PODS: r"pod|get|describe|metric",
}


@frozen
class Aim:
    """What lookups are chosen for: the focus, and what the evidence so far led to."""

    focus: Focus
    linked: tuple[str, ...] = ()
    linked_alerts: tuple[Alert, ...] = ()


def order(offered: Iterable[Lookup], aim: Aim, *, least: int, made: Sequence[Lookup] = ()) -> list[Lookup]:
    """The lookups worth making, the most telling first; the ``made`` ones left out.

    Only lookups that score ``least`` or more are given. The order is that of the scores; of two equal ones the one
    offered first comes first.
    """
    done = {_key(lookup) for lookup in made}
    left = [_Candidate(each, score(each, aim), _likeness(each)) for each in offered if _key(each) not in done]
    seen = Counter(map(_likeness, made))
    chosen: list[Lookup] = []
    while left:
        best = max(left, key=lambda candidate: candidate.score - REPEATED * seen[candidate.likeness])
        if best.score - REPEATED * seen[best.likeness] < least:
            break
        left.remove(best)
        chosen.append(best.lookup)
        seen[best.likeness] += 1
    return chosen


@frozen(eq=False)
class _Candidate:
    lookup: Lookup
    score: int
    likeness: tuple[str, str]


def score(lookup: Lookup, aim: Aim) -> int:
    """How much a lookup promises."""
    focus = aim.focus
    if lookup.tool == ALERTS_TOOL:
        return 1000
    points = next((points for pattern, points in _TOOLS if re.search(pattern, lookup.tool, re.I)), 5)
    asked = sum(
        ASKED_FOR for topic in focus.topics if re.search(_TOPIC_TOOLS[topic], lookup.tool, re.I) is not None
    )
    if focus.narrow and not asked:
        return NOT_ASKED_FOR
    points += asked
    if lookup.tool == RUNBOOK_TOOL:
        return points + _alert_fit(lookup, aim, ASKED_FOR)
    if "alertname" in lookup.arguments:
        return points + _alert_fit(lookup, aim, ON_ALERT)
    subject = subject_of(lookup)
    if not subject:
        points += ABOUT_NOBODY
    elif any(same_thing(subject, own) for own in focus.subjects):
        points += ON_SUBJECT
    elif any(same_thing(subject, other) for other in aim.linked):
        points += ON_LINKED
    elif focus.subjects:
        points += OFF_SUBJECT
    own_words = _words(lookup)
    points += SAME_WORDS * min(3, len(own_words & focus.words))
    namespaces = {alert.namespace for alert in focus.alerts if alert.namespace}
    if lookup.arguments.get("namespace") in namespaces:
        points += SAME_NAMESPACE
    if any(same_thing(word, own) for own in focus.subjects for word in _listed(lookup)):
        points += ON_SUBJECT // 2
    return points


def _alert_fit(lookup: Lookup, aim: Aim, near_points: int) -> int:
    name = str(lookup.arguments.get("alertname", "")).casefold()
    near = {alert.name.casefold() for alert in (*aim.focus.alerts, *aim.linked_alerts)}
    if name in near:
        return near_points
    return OFF_SUBJECT if near or aim.focus.subjects else 0


def _words(lookup: Lookup) -> frozenset[str]:
    text = " ".join([lookup.tool, *(value for value in lookup.arguments.values() if isinstance(value, str))])
    return frozenset(re.findall(r"[a-z]{3,}", text.casefold()))


def _listed(lookup: Lookup) -> Iterable[str]:
    """Names in arguments that are searched by: ``{"keyword": "orders"}``."""
    return [str(lookup.arguments[key]) for key in ("keyword", "selector", "query") if key in lookup.arguments]


def _likeness(lookup: Lookup) -> tuple[str, str]:
    kind = "log" if "log" in lookup.tool else lookup.tool
    if lookup.arguments.get("metric") is not None:
        return json_text(lookup.arguments), ""
    return kind, owner_of(subject_of(lookup))


def _key(lookup: Lookup) -> str:
    return lookup.tool + json_text(dict(sorted(lookup.arguments.items())))
