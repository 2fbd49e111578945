"""Which metrics of a thing are worth looking at, and how each is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from attrs import frozen

from casenotes.adapters.evidence.live.promql import matcher

MAX_SIGNALS = 8
"""Metrics of one thing at the most."""

MAX_NAMED = 3
"""Of these, at the most so many because of their names alone."""

RATE_OVER = "5m"

TELLING_NAME = 1
SHARED_WORD = 2
"""What a metric's name counts for: that it tells of trouble, and each word it shares with what the run is about."""


@frozen
class Signal:
    """What is measured, by a name whose words tell its unit, and the query for it."""

    metric: str
    query: str


_KNOWN = (
    (
        "cpu_usage_percent",
        ("node_cpu_seconds_total",),
        '100 * (1 - avg by (instance) (rate(node_cpu_seconds_total{{mode="idle",{of}}}[{over}])))',
    ),
    (
        "memory_usage_percent",
        ("node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes"),
        "100 * (1 - node_memory_MemAvailable_bytes{{{of}}} / node_memory_MemTotal_bytes{{{of}}})",
    ),
    (
        "disk_usage_percent",
        ("node_filesystem_avail_bytes", "node_filesystem_size_bytes"),
        '100 * (1 - node_filesystem_avail_bytes{{fstype!~"tmpfs|overlay",{of}}} / node_filesystem_size_bytes)',
    ),
    ("node_load1", ("node_load1",), "node_load1{{{of}}}"),
    (
        "container_cpu_usage",
        ("container_cpu_usage_seconds_total",),
        'sum by (pod) (rate(container_cpu_usage_seconds_total{{container!="",{of}}}[{over}]))',
    ),
    (
        "container_cpu_throttled_percent",
        ("container_cpu_cfs_throttled_periods_total", "container_cpu_cfs_periods_total"),
        "100 * sum by (pod) (rate(container_cpu_cfs_throttled_periods_total{{{of}}}[{over}]))"
        " / sum by (pod) (rate(container_cpu_cfs_periods_total{{{of}}}[{over}]))",
    ),
    (
        "container_memory_usage_bytes",
        ("container_memory_working_set_bytes",),
        'sum by (pod) (container_memory_working_set_bytes{{container!="",{of}}})',
    ),
    (
        "container_restarts",
        ("kube_pod_container_status_restarts_total",),
        "sum by (pod) (kube_pod_container_status_restarts_total{{{of}}})",
    ),
)
_TELLING = re.compile(
    r"error|fail|5xx|exception|timeout|retr|reject|drop|latenc|duration|response|request|queue|pool|connection"
    r"|pending|waiting|lag|saturation|throttl|restart|oom|heap|evict"
)
_OF_THE_TOOL = re.compile(
    r"^(?:go|promhttp|scrape|python|net_conntrack|node_scrape|node_textfile)_|_(?:created|info|sum|count)$"
)


def signals_for(names: Iterable[str], label: str, value: str, words: frozenset[str]) -> list[Signal]:
    """The signals of the thing that this label names, of the metrics that it has: the well-known ones of machines
    and containers, and those whose names share words with what the run is about; without the former, also those
    whose names tell of trouble.
    """
    there = sorted(set(names))
    of = matcher(label, value)
    known = [
        (Signal(metric, query.format(of=of, over=RATE_OVER)), needs)
        for metric, needs, query in _KNOWN
        if set(needs) <= set(there)
    ]
    used = {name for _, needs in known for name in needs}
    scored = [
        (_score(name, words), name) for name in there if name not in used and not _OF_THE_TOOL.search(name)
    ]
    least = SHARED_WORD if known else TELLING_NAME
    best = [name for score, name in sorted(scored, key=lambda each: (-each[0], each[1])) if score >= least]
    named = [_signal(name, label, of) for name in best[: MAX_SIGNALS if not known else MAX_NAMED]]
    return [*named, *(signal for signal, _ in known)][:MAX_SIGNALS]


def _score(name: str, words: frozenset[str]) -> int:
    parts = {part.removesuffix("s") for part in re.findall(r"[a-z]{4,}", name.casefold())}
    shared = len(parts & words)
    return SHARED_WORD * shared + (TELLING_NAME if _TELLING.search(name.casefold()) else 0)


def _signal(name: str, label: str, of: str) -> Signal:
    if name.endswith("_bucket"):
        base = name.removesuffix("_bucket")
        rate = f"sum by (le, {label}) (rate({name}{{{of}}}[{RATE_OVER}]))"
        return Signal(f"{base}_p90", f"histogram_quantile(0.9, {rate})")
    if name.endswith("_total"):
        return Signal(
            f"{name.removesuffix('_total')}_per_second",
            f"sum by ({label}) (rate({name}{{{of}}}[{RATE_OVER}]))",
        )
    return Signal(name, f"{name}{{{of}}}")
