"""What a pack has to look at, part by part, so that a later change of it shows."""

from __future__ import annotations

import hashlib
from pathlib import Path

from casenotes.adapters.evidence.files import Folder
from casenotes.adapters.evidence.incident import incident_in
from casenotes.core.text import Json, json_text

_PARTS = (
    ("observations", ".json"),
    ("metrics", ".json"),
    ("logs", ""),
    ("runbooks", ".md"),
    ("calls", ".json"),
)


def evidence_digests(path: Path) -> dict[str, str]:
    """Each file of evidence in the pack at ``path``, and ``alerts`` if there are any, with the digest of its content.

    Question, facts and decoys are no evidence. Raises ``InvalidEvidence``.
    """
    folder = Folder(path)
    alerts: list[Json] = list(incident_in(folder).alerts)
    found = {"alerts": _digest(json_text(alerts))} if alerts else {}
    for part, ending in _PARTS:
        for name in folder.names(part, ending):
            found[name] = _digest(folder.text(name).text)
    return found


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:32]}"
