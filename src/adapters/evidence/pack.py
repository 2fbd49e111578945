"""An incident pack: a folder of recorded evidence, as an evidence source.

::

    incident.json          id, source, question, alerts (Alertmanager v2), facts (for judging an answer)
    observations/*.json    {tool, arguments, status, result}: recorded tool calls
    metrics/*.json         Prometheus query_range answers (matrix), one metric a file
    logs/*                 text or JSON lines
    runbooks/*.md          one runbook a file, named for its alert
    calls/*.json           {tool, arguments, status, result, error}: answers that stand before those of the parts
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from casenotes.adapters.evidence.calls import ExactCalls, exact_calls
from casenotes.adapters.evidence.files import Folder
from casenotes.adapters.evidence.incident import incident_in
from casenotes.adapters.evidence.logs import LOGS_TOOL, LogsSource, log_lines
from casenotes.adapters.evidence.metrics import METRICS_TOOL, MetricsSource, matrices
from casenotes.adapters.evidence.recorded import AlertsSource, RecordedSource, recordings, unknown_tool
from casenotes.adapters.evidence.runbooks import RunbookSource
from casenotes.ports.agent import (
    ALERTS_TOOL,
    RUNBOOK_TOOL,
    EvidenceSource,
    Lookup,
    Observation,
    ObservationStatus,
)

OWN_TOOLS = frozenset({ALERTS_TOOL, METRICS_TOOL, LOGS_TOOL, RUNBOOK_TOOL})
"""Tools that a pack answers from its other parts; a recorded call cannot go by these names."""

SHIPPED = Path(__file__).parent / "shipped"
"""The pack that comes with casenotes: a shop whose checkout is slow."""


class Pack:
    """The parts of a pack as one ``EvidenceSource``: each tool is answered by one of them.

    ``exact`` holds answers of single calls, which stand before what a part would answer.
    """

    def __init__(self, parts: Sequence[EvidenceSource], exact: ExactCalls | None = None) -> None:
        self._parts = tuple(parts)
        self._exact = exact or ExactCalls(())
        self._by_tool = {tool: part for part in self._parts for tool in part.tools}

    @property
    def tools(self) -> frozenset[str]:
        """The tools of the parts, and of the exact calls."""
        return frozenset(self._by_tool) | self._exact.tools

    async def offer(self) -> Sequence[Lookup]:
        """What the parts offer: alerts, recorded calls, metrics, logs, runbooks; then the exact calls."""
        offered = [lookup for part in self._parts for lookup in await part.offer()]
        return tuple(offered + [lookup for lookup in self._exact.lookups if lookup not in offered])

    async def look(self, lookup: Lookup) -> Observation:
        """What was recorded for exactly this call, or what the part that has the tool answers."""
        if (recorded := self._exact.get(lookup)) is not None:
            return recorded
        if lookup.tool in self._exact.tools - self._by_tool.keys():
            return Observation(ObservationStatus.NO_DATA)
        part = self._by_tool.get(lookup.tool)
        return unknown_tool(lookup) if part is None else await part.look(lookup)


def load_pack(path: Path) -> EvidenceSource:
    """The pack in this folder, read whole into memory; the disk is not touched again.

    Of ``incident.json`` only the alerts become evidence: ``facts`` stay behind. Raises ``InvalidEvidence``,
    which names file and field, when a part is missing, malformed, too large or leads out of the folder.
    """
    folder = Folder(path)
    return Pack(
        [
            AlertsSource(incident_in(folder).alerts),
            RecordedSource(recordings(map(folder.json, folder.names("observations", ".json")), OWN_TOOLS)),
            MetricsSource(matrices(map(folder.json, folder.names("metrics", ".json")))),
            LogsSource(log_lines(map(folder.text, folder.names("logs")))),
            RunbookSource(map(folder.text, folder.names("runbooks", ".md"))),
        ],
        exact_calls(map(folder.json, folder.names("calls", ".json"))),
    )


def shipped_pack() -> EvidenceSource:
    """The pack that comes with casenotes."""
    return load_pack(SHIPPED)
