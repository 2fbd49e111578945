"""Secrets, and what stands in their place: one documented list, applied to all text before it goes anywhere.

What is found, what is not, and how to add to it: docs/redaction.md. Here are the faces; the rules are in ``patterns``
(by shape), ``fields`` (by the name of a field) and ``private_keys``.
"""

from __future__ import annotations

from casenotes.core.redaction.fields import FieldNames
from casenotes.core.redaction.patterns import LineRule
from casenotes.core.redaction.rules import (
    RULES,
    Addition,
    Redaction,
    added,
    mark_for,
    masked_object,
    redact,
    redact_name,
    redaction_for_key,
)
from casenotes.core.redaction.stream import StreamRedaction

__all__ = [
    "RULES",
    "Addition",
    "FieldNames",
    "LineRule",
    "Redaction",
    "StreamRedaction",
    "added",
    "mark_for",
    "masked_object",
    "redact",
    "redact_name",
    "redaction_for_key",
]
