"""Which reading fits which observation."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

from casenotes.adapters.agents.findings.changes import change_findings
from casenotes.adapters.agents.findings.containers import container_findings
from casenotes.adapters.agents.findings.events import condition_findings, event_findings
from casenotes.adapters.agents.findings.logs import log_findings
from casenotes.adapters.agents.findings.model import Finding
from casenotes.adapters.agents.findings.outline import flatten, outline
from casenotes.adapters.agents.findings.runbooks import is_runbook, runbook_findings
from casenotes.adapters.agents.findings.series import series_findings
from casenotes.adapters.agents.findings.signs import sign_findings
from casenotes.adapters.agents.findings.tables import rows
from casenotes.adapters.agents.findings.values import is_vector, value_findings
from casenotes.adapters.agents.findings.workloads import workload_findings
from casenotes.core.text import Json, fold
from casenotes.ports.agent import RUNBOOK_TOOL, Lookup

_SUBJECT_ARGUMENTS = (
    "name",
    "pod_name",
    "pod",
    "service",
    "deployment",
    "job",
    "workload",
    "file",
    "app",
    "container",
)
_FAILED_COMMAND = re.compile(r"\ACommand `[^`]*` failed with return code \d+", re.M)
_SERVER_ERROR = re.compile(r"^(?:Error from server.*|error: .+)$", re.M)
_NO_OUTPUT = re.compile(r"\A\s*(?:stderr:\s*|stdout:\s*|No resources found.*)*\Z")


@frozen
class Reading:
    """What was read out of one result. ``failure`` is set when the result is that of a call that failed."""

    findings: tuple[Finding, ...] = ()
    empty: bool = False
    failure: str | None = None


def subject_of(lookup: Lookup) -> str:
    """Whom a lookup is about, by its arguments; empty when they do not say."""
    named = (lookup.arguments.get(key) for key in _SUBJECT_ARGUMENTS)
    return next((name for name in named if isinstance(name, str) and name.strip("* ")), "")


def read(lookup: Lookup, result: Json) -> Reading:
    """What a successful observation shows."""
    if isinstance(result, str):
        return _read_text(lookup, result)
    if lookup.tool == RUNBOOK_TOOL or result in (None, [], {}):
        return Reading(empty=True)
    if isinstance(result, dict) and _is_matrix(result):
        return Reading(tuple(series_findings(str(lookup.arguments.get("metric", "")), result)))
    if isinstance(result, dict) and is_vector(result):
        return Reading(tuple(value_findings(lookup.arguments, result)))
    subject = subject_of(lookup)
    entries = flatten(result)
    texts = "\n".join(entry.value for entry in entries)
    return Reading(
        _distinct(
            container_findings(subject, entries)
            + condition_findings(subject, (), entries)
            + change_findings(subject, result)
            + sign_findings(subject, texts)
        )
    )


def _read_text(lookup: Lookup, text: str) -> Reading:
    subject = subject_of(lookup)
    if _NO_OUTPUT.match(text):
        return Reading(empty=True)
    if _FAILED_COMMAND.match(text) or text.startswith("Error from server"):
        said = _SERVER_ERROR.search(text)
        return Reading(failure=fold(said[0] if said else text.splitlines()[0], 300))
    if lookup.tool == RUNBOOK_TOOL or (not _is_log(lookup) and is_runbook(text)):
        return Reading(tuple(runbook_findings(_runbook_name(lookup), text)))
    if _is_log(lookup):
        return Reading(tuple(log_findings(subject, text)))
    table = list(rows(text))
    entries = outline(text)
    about = next(
        (entry.value for entry in entries if entry.path in (("Name",), ("metadata", "name"))), subject
    )
    return Reading(
        _distinct(
            container_findings(about, entries)
            + event_findings(about, table)
            + condition_findings(about, table, entries)
            + workload_findings(about, text, table, entries)
            + change_findings(about, text)
            + sign_findings(about, "" if _has_events(table) else text)
        )
    )


def _has_events(table: list[Mapping[str, str]]) -> bool:
    return any({"reason", "message"} <= row.keys() for row in table)


def _is_matrix(result: Mapping[str, Json]) -> bool:
    data = result.get("data")
    return isinstance(data, dict) and data.get("resultType") == "matrix"


def _is_log(lookup: Lookup) -> bool:
    return re.search(r"(?:^|[_.\-])logs?(?:$|[_.\-])", lookup.tool) is not None


def _runbook_name(lookup: Lookup) -> str:
    named = lookup.arguments.get("alertname")
    return named if isinstance(named, str) else ""


def _distinct(findings: list[Finding]) -> tuple[Finding, ...]:
    return tuple(dict.fromkeys(findings))
