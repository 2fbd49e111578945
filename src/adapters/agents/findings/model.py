"""A finding: one statement that one observation bears out."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum

from attrs import frozen

from casenotes.core.text import fold

MAX_QUOTE = 280


class Kind(StrEnum):
    """What a finding was read from."""

    CHANGE = "change"
    CONTAINER = "container"
    EVENT = "event"
    LOG = "log"
    METRIC = "metric"
    WORKLOAD = "workload"
    RUNBOOK = "runbook"
    VALUE = "value"


class Role(StrEnum):
    """What a finding says of a cause: it can be one, it shows a fault, it is background, it advises, or it clears."""

    CAUSE = "cause"
    SYMPTOM = "symptom"
    CONTEXT = "context"
    ADVICE = "advice"
    CLEAR = "clear"


@frozen
class Finding:
    """One statement.

    ``subject`` is whom it is about (a pod, a service, a job; empty when unknown), ``text`` one sentence in
    Markdown without its full stop, ``weight`` 0-100 as ``ranking`` sets it, ``since`` the aware time at which
    it began, when the evidence says so, ``action`` what a person would do about it, as an order, ``alert`` the
    alert whose own expression it tells of.
    """

    kind: Kind
    role: Role
    subject: str
    text: str
    weight: int
    since: datetime | None = None
    action: str = ""
    alert: str = ""


def code(text: str, limit: int = MAX_QUOTE) -> str:
    """Words of the evidence as one Markdown code span, cut to ``limit`` characters."""
    line = fold(text, limit)
    if "`" not in line:
        return f"`{line}`"
    return f"`` {line} ``" if "``" not in line else f"`{line.replace('`', chr(39))}`"


def moment(time: datetime) -> str:
    """A time as an answer shows it: UTC, to the second."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
