"""Well-known messages of Kubernetes, wherever in a text they stand."""

from __future__ import annotations

import re

from casenotes.adapters.agents.findings import actions, ranking
from casenotes.adapters.agents.findings.model import Finding, Kind, Role, code

MAX_SIGNS = 6

_SIGNS = (
    (
        re.compile(
            r"(?<!preemption: )\b0/\d+ nodes? (?:is|are) available: [^\"\]}\\]{5,400}?(?=\. preemption|[\"\]}\\]|\.$|$)"
        ),
        "It could not be scheduled",
        ranking.SCHEDULING,
        actions.SCHEDULE,
    ),
    (
        re.compile(r"Failed to pull image [\"']?[^\s\"']+[\"']?: .{5,400}?(?=\"[,\]}]|$)"),
        "An image could not be pulled",
        ranking.IMAGE_PULL,
        actions.IMAGE,
    ),
    (
        re.compile(r"[^\"\[{]{0,120}\bexceeded quota: [^\"\]}]{5,300}"),
        "A quota is used up",
        ranking.QUOTA,
        actions.QUOTA,
    ),
    (
        re.compile(r"Job has reached the specified backoff limit", re.I),
        "A job gave up",
        ranking.BACKOFF_LIMIT,
        actions.READ_FAILED_PODS,
    ),
    (
        re.compile(r"MountVolume\.\w+ failed for volume [^\]}]{5,300}"),
        "A volume could not be mounted",
        ranking.MOUNT,
        actions.MOUNT,
    ),
    (
        re.compile(r"(?:Liveness|Readiness|Startup) probe failed: [^\"\]}]{3,200}"),
        "A probe failed",
        ranking.PROBE,
        actions.PROBE,
    ),
)
_UNESCAPE = re.compile(r"\\+(?=[\"'])")
_SPACE = re.compile(r"\s+")


def sign_findings(subject: str, text: str) -> list[Finding]:
    """The well-known messages in a text, each once; the text may be wrapped or quoted as in JSON or YAML."""
    plain = _SPACE.sub(" ", _UNESCAPE.sub("", text))
    found: dict[str, Finding] = {}
    for pattern, words, weight, action in _SIGNS:
        for match in pattern.finditer(plain):
            message = match[0].strip()
            if any(message[:60] in known for known in found):
                continue
            about = f" ({code(subject)})" if subject else ""
            role = Role.CAUSE if weight > ranking.BACKOFF_LIMIT else Role.SYMPTOM
            found[message] = Finding(
                Kind.EVENT,
                role,
                subject,
                f"{words}{about}: {code(message)}",
                weight,
                action=action,
            )
            if len(found) >= MAX_SIGNS:
                return list(found.values())
    return list(found.values())
