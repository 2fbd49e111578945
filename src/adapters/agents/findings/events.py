"""Kubernetes warning events and failed conditions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from casenotes.adapters.agents.findings import actions, ranking
from casenotes.adapters.agents.findings.logs import mask
from casenotes.adapters.agents.findings.model import Finding, Kind, Role, code
from casenotes.adapters.agents.findings.outline import Entry, Path
from casenotes.adapters.agents.findings.tables import Row

_SCHEDULE = (ranking.SCHEDULING, actions.SCHEDULE)
_GAVE_UP = (ranking.BACKOFF_LIMIT, actions.READ_FAILED_PODS)
_MOUNT = (ranking.MOUNT, actions.MOUNT)
_REASONS = {
    "failedscheduling": _SCHEDULE,
    "evicted": _SCHEDULE,
    "backofflimitexceeded": _GAVE_UP,
    "deadlineexceeded": _GAVE_UP,
    "failedmount": _MOUNT,
    "failedattachvolume": _MOUNT,
    "failedcreate": (ranking.QUOTA, actions.QUOTA),
    "unhealthy": (ranking.PROBE, actions.PROBE),
    "backoff": (ranking.BACK_OFF_EVENT, ""),
    "oomkilling": (ranking.OUT_OF_MEMORY, actions.MEMORY),
}
_PULL = re.compile(r"\bpull(?:ing)?\b.*\bimage\b|\bimage\b.*\bpull", re.I)
_DENIED = re.compile(
    r"\bdenied\b|\bnot found\b|\bfailed to\b|\bunauthori[sz]ed\b|\bno such host\b|\btimeout\b", re.I
)
_NODE_TROUBLE = re.compile(r"pressure$|^networkunavailable$")
_GOOD_WHEN_FALSE = re.compile(
    r"pressure$|^networkunavailable$|^failed$|^failuretarget$|^suspended$|^disruptiontarget$"
)


def event_findings(subject: str, rows: Iterable[Row]) -> list[Finding]:
    """Each kind of warning once, with how many rows of it there are."""
    first: dict[tuple[str, str, str], tuple[Row, int]] = {}
    for row in rows:
        if row.get("type", "").casefold() != "warning" or not row.get("message"):
            continue
        key = (row.get("object", ""), row.get("reason", ""), mask(row["message"]))
        known = first.get(key)
        first[key] = (row, 1) if known is None else (known[0], known[1] + 1)
    return [_event(subject, row, count) for row, count in first.values()]


def _event(subject: str, row: Row, count: int) -> Finding:
    reason, message = row.get("reason", ""), row["message"].replace('\\"', '"')
    about = row.get("object", "").rpartition("/")[2] or subject
    weight, action = _REASONS.get(reason.casefold(), (ranking.WARNING_EVENT, ""))
    if _PULL.search(message):
        weight = ranking.IMAGE_PULL if _DENIED.search(message) else ranking.WAITING
        action = actions.IMAGE
    elif message.casefold().startswith("error: "):
        weight = ranking.BACK_OFF_EVENT
    text = "Warning event"
    text += f" {code(reason)}" if reason else ""
    text += f" for {code(about)}" if about else ""
    text += f": {code(message)}"
    text += f" ({count} events)" if count > 1 else ""
    role = Role.CAUSE if weight > ranking.BACKOFF_LIMIT else Role.SYMPTOM
    return Finding(Kind.EVENT, role, about, text, weight, action=action)


def condition_findings(subject: str, rows: Iterable[Row], entries: Sequence[Entry]) -> list[Finding]:
    """Conditions that are not as they should be, from the table of ``describe`` or from YAML or JSON."""
    conditions = [
        (row["type"], row["status"], row.get("reason", ""), row.get("message", ""))
        for row in rows
        if {"type", "status"} <= row.keys() and "name" not in row
    ]
    by_item: dict[Path, dict[str, str]] = {}
    for entry in entries:
        if len(entry.path) >= 3 and entry.path[-3] == "conditions" and entry.path[-2].startswith("["):
            by_item.setdefault(entry.path[:-1], {})[entry.key] = entry.value
    conditions += [
        (item["type"], item.get("status", ""), item.get("reason", ""), item.get("message", ""))
        for item in by_item.values()
        if "type" in item
    ]
    bad = [condition for condition in dict.fromkeys(conditions) if _is_bad(*condition[:2])]
    told = [_condition(subject, *condition) for condition in bad if condition[2]]
    return told + _bare(subject, [condition for condition in bad if not condition[2]])


def _bare(subject: str, conditions: Sequence[tuple[str, str, str, str]]) -> list[Finding]:
    """Conditions without a reason, in one finding: they repeat what the containers' states already say."""
    if not conditions:
        return []
    said = ", ".join(f"{code(kind)} is {status}" for kind, status, _, _ in conditions)
    text = f"Conditions{f' of {code(subject)}' if subject else ''}: {said}"
    return [Finding(Kind.EVENT, Role.SYMPTOM, subject, text, ranking.BARE_CONDITION)]


def _is_bad(kind: str, status: str) -> bool:
    good = "false" if _GOOD_WHEN_FALSE.search(kind.casefold()) else "true"
    return status.casefold() in ("true", "false", "unknown") and status.casefold() != good


def _condition(subject: str, kind: str, status: str, reason: str, message: str) -> Finding:
    text = f"Condition {code(kind)}{f' of {code(subject)}' if subject else ''} is {status}: {code(reason)}"
    text += f" ({code(message)})" if message else ""
    if _NODE_TROUBLE.search(kind.casefold()) or (kind == "Ready" and status == "Unknown"):
        return Finding(Kind.EVENT, Role.CAUSE, subject, text, ranking.NODE_CONDITION, action=actions.NODE)
    return Finding(Kind.EVENT, Role.SYMPTOM, subject, text, ranking.FAILED_CONDITION)
