"""Runbooks: Markdown files, found by the name of an alert or by words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from casenotes.adapters.evidence.files import TextFile
from casenotes.adapters.evidence.recorded import unknown_tool
from casenotes.ports.agent import RUNBOOK_TOOL, Lookup, Observation, ObservationStatus

_WORD = re.compile(r"[a-z0-9]{3,}")
_COMMON = frozenset(
    _WORD.findall("the and what why how who when where which does did was are has have this that with for")
)
_TITLE = re.compile(r"^#\s+(.+?)\s*#*$", re.MULTILINE)


class RunbookSource:
    """``runbooks.find {"alertname": name}`` or ``{"text": words}`` answers with one runbook's text, or null.

    By alert name: the file's name or the first heading is that name, case and punctuation aside. By text: the
    runbook that holds most of the words, the earlier of two; at least half of them must be there.
    """

    tools = frozenset({RUNBOOK_TOOL})

    def __init__(self, runbooks: Iterable[TextFile]) -> None:
        self._runbooks = tuple(runbooks)

    async def offer(self) -> Sequence[Lookup]:
        """One lookup a runbook, by the name of its file."""
        return tuple(Lookup(RUNBOOK_TOOL, {"alertname": runbook.stem}) for runbook in self._runbooks)

    async def look(self, lookup: Lookup) -> Observation:
        """The runbook's text; ``no_data`` with null where there is none."""
        if lookup.tool != RUNBOOK_TOOL:
            return unknown_tool(lookup)
        alertname, text = lookup.arguments.get("alertname"), lookup.arguments.get("text")
        found = self._by_name(alertname) if isinstance(alertname, str) else None
        if found is None and isinstance(text, str):
            found = self._by_text(text)
        if found is None:
            return Observation(ObservationStatus.NO_DATA)
        return Observation(ObservationStatus.SUCCESS, found.text)

    def _by_name(self, name: str) -> TextFile | None:
        wanted = _plain(name)
        for runbook in self._runbooks:
            title = _TITLE.search(runbook.text)
            if wanted and wanted in (_plain(runbook.stem), _plain(title[1]) if title else ""):
                return runbook
        return None

    def _by_text(self, text: str) -> TextFile | None:
        words = frozenset(_WORD.findall(text.casefold())) - _COMMON
        hits = [len(words & frozenset(_WORD.findall(runbook.text.casefold()))) for runbook in self._runbooks]
        best = max(hits, default=0)
        return self._runbooks[hits.index(best)] if best and best * 2 >= len(words) else None


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
