"""What was changed, when, and on what: lines of the form ``key: old -> new``, or objects with both."""

from __future__ import annotations

import re
from datetime import datetime

from casenotes.adapters.agents.findings import ranking
from casenotes.adapters.agents.findings.logs import parse_time
from casenotes.adapters.agents.findings.model import Finding, Kind, Role, code, moment
from casenotes.core.text import Json

MAX_CHANGES = 12

_CHANGE = re.compile(r"(?P<key>[\w.\-\[\]/]+)\s*[:=]\s*(?P<old>[^\s>]\S*)\s*(?:->|=>|→)\s*(?P<new>\S+)")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})")
_TARGET = re.compile(
    r"\b(?:deployments?|statefulsets?|daemonsets?|services?|configmaps?|cronjobs?|jobs?)(?:\.apps)?/([a-z0-9][a-z0-9.-]*)",
    re.I,
)
_KEYS = ("field", "key", "path", "name", "setting")
_OLD_NEW = (("old", "new"), ("from", "to"), ("before", "after"))
_WHO = ("target", "object", "resource", "workload", "service", "deployment", "subject")
_WHEN = ("time", "timestamp", "at", "when", "date")


def change_findings(subject: str, result: Json) -> list[Finding]:
    """The changes that a text or an object tells of, in its order."""
    found = _from_text(subject, result) if isinstance(result, str) else _from_json(subject, None, result)
    return found[:MAX_CHANGES]


def _from_text(subject: str, text: str) -> list[Finding]:
    found: list[Finding] = []
    about, time = subject, None
    for line in text.splitlines():
        if (stamp := _TIME.search(line)) is not None:
            time = parse_time(stamp[0])
        if (target := _TARGET.search(line)) is not None:
            about = target[1]
        found += [
            _change(about, time, match["key"], match["old"], match["new"]) for match in _CHANGE.finditer(line)
        ]
    return found


def _from_json(subject: str, time: datetime | None, value: Json) -> list[Finding]:
    match value:
        case list():
            return [finding for item in value for finding in _from_json(subject, time, item)]
        case dict():
            about = next((str(value[key]) for key in _WHO if isinstance(value.get(key), str)), subject)
            about = about.rpartition("/")[2] or subject
            stamp = next((str(value[key]) for key in _WHEN if isinstance(value.get(key), str)), "")
            time = parse_time(stamp) or time
            key = next((str(value[key]) for key in _KEYS if isinstance(value.get(key), str)), None)
            for old, new in _OLD_NEW:
                if key is not None and old in value and new in value and value[old] != value[new]:
                    return [_change(about, time, key, str(value[old]), str(value[new]))]
            return [finding for item in value.values() for finding in _from_json(about, time, item)]
    return []


def _change(subject: str, time: datetime | None, key: str, old: str, new: str) -> Finding:
    text = (
        f"{code(key)}{f' of {code(subject)}' if subject else ''} was changed from {code(old)} to {code(new)}"
    )
    text += f" at {moment(time)}" if time is not None else ""
    action = f"set {code(key)}{f' of {code(subject)}' if subject else ''} back to {code(old)}, and see whether it helps"
    return Finding(Kind.CHANGE, Role.CAUSE, subject, text, ranking.CHANGE, time, action)
