"""A folder of runbooks, with its sub-folders, as it is now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from casenotes.adapters.evidence.files import TextFile
from casenotes.adapters.evidence.live.folders import LiveFolder
from casenotes.adapters.evidence.live.mentions import by_name, named_in
from casenotes.adapters.evidence.recorded import unknown_tool
from casenotes.adapters.evidence.runbooks import RunbookSource
from casenotes.core.text import fold
from casenotes.ports.agent import RUNBOOK_TOOL, About, Lookup, Observation, ObservationStatus

MAX_FILES = 1_000
MAX_FILE_BYTES = 256 * 1024
MAX_BYTES = 32 * 1024 * 1024


class RunbookFolderSource:
    """``runbooks.find`` as ``RunbookSource`` answers it, over the Markdown files of a folder and those below it."""

    tools = frozenset({RUNBOOK_TOOL})

    def __init__(self, folder: Path) -> None:
        self._folder = LiveFolder(folder)

    async def offer(self) -> Sequence[Lookup]:
        """Nothing: a folder may hold hundreds of runbooks."""
        return ()

    async def offer_for(self, about: About) -> Sequence[Lookup]:
        """The runbooks of the alerts and those that the question names; else the one nearest to its words."""
        try:
            runbooks = await asyncio.to_thread(self._read)
        except OSError:
            runbooks = []
        stems = [runbook.stem for runbook in runbooks]
        names = [*by_name(about.alerts), *named_in(about.question, stems)]
        named = [Lookup(RUNBOOK_TOOL, {"alertname": name}) for name in dict.fromkeys(names)]
        if named or not about.question.strip():
            return tuple(named)
        by_words = Lookup(RUNBOOK_TOOL, {"text": fold(about.question, 200)})
        found = await RunbookSource(runbooks).look(by_words)
        return (by_words,) if found.status is ObservationStatus.SUCCESS else ()

    async def look(self, lookup: Lookup) -> Observation:
        """The runbook's text; ``no_data`` with null where there is none."""
        if lookup.tool != RUNBOOK_TOOL:
            return unknown_tool(lookup)
        try:
            runbooks = await asyncio.to_thread(self._read)
        except OSError:
            return Observation(ObservationStatus.ERROR, error_message="the runbook folder cannot be read")
        return await RunbookSource(runbooks).look(lookup)

    def _read(self) -> list[TextFile]:
        found: list[TextFile] = []
        left = MAX_BYTES
        for file in self._folder.files(".md", ".markdown")[:MAX_FILES]:
            if file.size > min(left, MAX_FILE_BYTES):
                continue
            try:
                text, _ = self._folder.tail(file.name, MAX_FILE_BYTES)
            except OSError:
                continue
            left -= file.size
            found.append(TextFile(file.name, text))
        return found
