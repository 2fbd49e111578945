"""The first facts of a captured incident, out of an answer that somebody found useful."""

from __future__ import annotations

import re

from casenotes.core import evaluation
from casenotes.core.baseline.judging import claims
from casenotes.core.text import Json, JsonObject, fold
from casenotes.core.views import RunTrace
from casenotes.core.words import Rating

MAX_FACTS = 3
MAX_TERMS = 4

_CODE = re.compile(r"`([^`|\n]{2,80})`")
_CITATIONS = re.compile(r"\s*\[T\d{1,9}\]")


def prefilled_facts(trace: RunTrace) -> list[JsonObject]:
    """What the first cited claims of a ``useful`` answer say, each with the names in it as its terms.

    Empty for any other run: what a good answer states is then for a person to write.
    """
    if trace.answer is None or trace.feedback is None or trace.feedback.rating != Rating.USEFUL:
        return []
    alerts = {tool.sequence for tool in trace.tool_invocations if tool.tool_name == evaluation.ALERTS_TOOL}
    found: list[JsonObject] = []
    for claim in claims(trace.answer):
        terms: list[Json] = list(dict.fromkeys(_CODE.findall(claim)))[:MAX_TERMS]
        if terms and evaluation.cited(claim) - alerts:  # that an alert fires is what was asked about
            said = _CITATIONS.sub("", claim).replace("**", "").replace("`", "")
            found.append({"text": fold(said, 300), "terms": terms})
    return found[:MAX_FACTS]
