"""Pods and workloads that are not ready, from ``kubectl get``, ``find`` and lineage listings, and job counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from attrs import frozen

from casenotes.adapters.agents.findings import ranking
from casenotes.adapters.agents.findings.model import Finding, Kind, Role, code
from casenotes.adapters.agents.findings.names import owner_of
from casenotes.adapters.agents.findings.outline import Entry
from casenotes.adapters.agents.findings.tables import Row

_FINE = frozenset(
    {"running", "completed", "succeeded", "complete", "ready", "bound", "active", "-", "", "true"}
)
_POD_LINE = re.compile(
    r"^(?:[a-z0-9-]+\s+)?(?P<name>[a-z0-9][a-z0-9.-]*)\s+(?P<ready>\d+)/(?P<all>\d+)\s+(?P<status>[A-Z][\w:]*)\s+(?P<restarts>\d+)\b",
    re.MULTILINE,
)
_FAILED_PODS = re.compile(r"\b([1-9]\d*) Failed\b")
_REPLICAS = re.compile(r"(\d+) desired.*?(\d+) available(?:.*?(\d+) unavailable)?")


@frozen
class _Line:
    name: str
    ready: str
    status: str
    restarts: str


def workload_findings(
    subject: str, text: str, rows: Iterable[Row], entries: Sequence[Entry]
) -> list[Finding]:
    """What is not ready, pods of one owner in one state taken together; failed pods of a job; missing replicas."""
    lines = [line for row in rows if (line := _read(row)) is not None]
    if not lines:
        lines = [
            _Line(found["name"], f"{found['ready']}/{found['all']}", found["status"], found["restarts"])
            for found in _POD_LINE.finditer(text)
        ]
    alike: dict[tuple[str, str, str], list[_Line]] = {}
    for line in lines:
        if _is_bad(line):
            alike.setdefault((owner_of(line.name), line.ready, line.status), []).append(line)
    return [_finding(owner, group) for (owner, _, _), group in alike.items()] + _described(subject, entries)


def _read(row: Row) -> _Line | None:
    if "name" not in row or "/" not in row.get("ready", row.get("completions", "")):
        return None
    name = row["name"].rpartition("/")[2] or row["name"]
    restarts = row.get("restarts", "").partition(" ")[0]
    return _Line(name, row.get("ready", row.get("completions", "")), row.get("status", ""), restarts)


def _is_bad(line: _Line) -> bool:
    if line.status.casefold() in ("completed", "succeeded", "complete"):
        return False
    ready, _, wanted = line.ready.partition("/")
    return ready != wanted or line.status.casefold() not in _FINE


def _finding(owner: str, group: Sequence[_Line]) -> Finding:
    line = group[0]
    if len(group) == 1:
        subject, who = line.name, code(line.name)
    else:
        names = ", ".join(code(other.name) for other in group[:3])
        more = f" and {len(group) - 3} more" if len(group) > 3 else ""
        subject, who = owner, f"{len(group)} pods of {code(owner)} ({names}{more})"
    text = f"{who}: {line.ready} ready" + (f", status {code(line.status)}" if line.status else "")
    if line.restarts.isdecimal() and int(line.restarts):
        text += f", {line.restarts} restart{'s' * (line.restarts != '1')}"
    return Finding(Kind.WORKLOAD, Role.SYMPTOM, subject, text, ranking.NOT_READY)


def _described(subject: str, entries: Sequence[Entry]) -> list[Finding]:
    found: list[Finding] = []
    about = code(subject) if subject else "The workload"
    for entry in entries:
        failed = _FAILED_PODS.search(entry.value) if entry.path == ("Pods Statuses",) else None
        if failed is not None:
            limit = next((other.value for other in entries if other.path == ("Backoff Limit",)), "")
            text = f"Job {about} has {failed[1]} failed pod{'s' * (failed[1] != '1')} ({code(entry.value)})"
            text += f"; its backoff limit is {limit}" if limit else ""
            found.append(Finding(Kind.WORKLOAD, Role.SYMPTOM, subject, text, ranking.NOT_READY))
        replicas = _REPLICAS.search(entry.value) if entry.path == ("Replicas",) else None
        if replicas is not None and int(replicas[2]) < int(replicas[1]):
            text = f"{about} has {replicas[2]} of {replicas[1]} wanted replicas available"
            found.append(Finding(Kind.WORKLOAD, Role.SYMPTOM, subject, text, ranking.NOT_READY))
        if entry.path == ("Status",) and entry.value in ("Failed", "Pending", "Unknown"):
            text = f"{about} has the status {code(entry.value)}"
            found.append(Finding(Kind.WORKLOAD, Role.SYMPTOM, subject, text, ranking.NOT_READY - 4))
    return found
