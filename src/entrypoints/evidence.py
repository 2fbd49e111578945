"""Which evidence there is to look at, by the settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from casenotes.adapters.evidence import load_pack, shipped_pack
from casenotes.adapters.evidence.live import (
    AlertmanagerSource,
    LogFolderSource,
    LokiSource,
    PrometheusAlertsSource,
    PrometheusSource,
    RunbookFolderSource,
    TimeSource,
    Upstream,
)
from casenotes.adapters.evidence.partial import Without
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import EvidenceSource


def evidence_sources(settings: Settings) -> Sequence[EvidenceSource]:
    """The live sources that are set, then what they leave of the incident pack. Raises ``InvalidEvidence``.

    Without a live source it is the pack of the settings, or the one that ships. With one, the pack that ships is
    left out, since an answer about a running system must not rest on an example; of a pack that is set, the tools
    that a live source answers are hidden. Connections are opened by the first lookup, and closed by ``close``.
    """
    live = list(_live(settings))
    if not live:
        return [shipped_pack() if settings.evidence is None else load_pack(settings.evidence)]
    live.append(TimeSource())
    if settings.evidence is None:
        return live
    replaced = frozenset().union(*(source.tools for source in live))
    return [*live, Without(load_pack(settings.evidence), replaced)]


def _live(settings: Settings) -> Iterator[EvidenceSource]:
    if settings.alertmanager_url is not None:
        yield AlertmanagerSource(Upstream("Alertmanager", settings.alertmanager_url))
    elif settings.prometheus_url is not None:
        yield PrometheusAlertsSource(Upstream("Prometheus", settings.prometheus_url))
    if settings.prometheus_url is not None:
        yield PrometheusSource(Upstream("Prometheus", settings.prometheus_url))
    if settings.loki_url is not None:
        yield LokiSource(Upstream("Loki", settings.loki_url))
    if settings.logs is not None:
        yield LogFolderSource(settings.logs)
    if settings.runbooks is not None:
        yield RunbookFolderSource(settings.runbooks)
