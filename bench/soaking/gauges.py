"""What the replicas hold while they are soaked: memory, open files, connections to PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from statistics import median

import asyncpg  # type: ignore[import-untyped]
from attrs import define, field, frozen

from bench.soaking.faults import Progress
from bench.soaking.installation import Installation, Replica

EVERY_SECONDS = 0.5
WARM_UP = 0.2
"""The share of a process's requests that is left out: caches fill."""

MOST_GROWTH, MOST_GROWTH_MB = 0.10, 10.0
"""Memory is flat when it grew by less than one of the two."""

STUCK_SECONDS = 5.0
"""A transaction that has been idle for so long was forgotten; a shorter pause is that between two statements."""

_AWAY = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""What a look meets while the server starts anew."""

_CONNECTIONS = """
SELECT state, count(*) AS number, extract(epoch FROM max(clock_timestamp() - state_change))::float8 AS oldest
FROM pg_stat_activity WHERE application_name = 'casenotes' GROUP BY state
"""


@frozen
class Sample:
    """One process at one moment: how many requests had begun, megabytes of resident memory, open files."""

    begun: int
    rss: float
    files: int


@frozen
class Footprint:
    """Megabytes of one process: medians of the first and the last quarter after warm-up, and the most."""

    replica: str
    samples: int
    first_quarter: float
    last_quarter: float
    peak: float
    files: int

    @property
    def grew(self) -> bool:
        growth = self.last_quarter - self.first_quarter
        return growth >= MOST_GROWTH_MB and growth >= MOST_GROWTH * self.first_quarter


@define
class Gauges:
    """Samples of the processes that live now; ``stuck`` counts the forgotten transactions that were seen."""

    here: Installation
    progress: Progress
    looks: int = field(default=0, init=False)
    most_connections: int = field(default=0, init=False)
    longest_idle: float = field(default=0.0, init=False)
    stuck: int = field(default=0, init=False)
    _samples: dict[tuple[str, int], list[Sample]] = field(factory=dict, init=False)

    async def watch(self) -> None:
        """Look every half a second until cancelled."""
        url = self.here.ledger.replace("+asyncpg", "")
        connection: asyncpg.Connection | None = None
        try:
            while True:
                for replica in self.here.replicas:
                    self._measure(replica)
                try:
                    if connection is None:
                        connection = await asyncpg.connect(url, timeout=5, command_timeout=5)
                    self._count(await connection.fetch(_CONNECTIONS))
                except _AWAY:
                    if connection is not None:
                        connection.terminate()
                    connection = None
                await asyncio.sleep(EVERY_SECONDS)
        finally:
            if connection is not None:
                connection.terminate()

    def _measure(self, replica: Replica) -> None:
        pid = replica.pid
        if pid is None:
            return
        try:
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            files = len(os.listdir(f"/proc/{pid}/fd"))
        except (OSError, IndexError):  # it has just gone; or the system has no such files
            return
        rss = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
        samples = self._samples.setdefault((replica.name, replica.starts), [])
        samples.append(Sample(self.progress.begun, rss, files))

    def _count(self, states: list[asyncpg.Record]) -> None:
        self.looks += 1
        self.most_connections = max(self.most_connections, sum(row["number"] for row in states))
        for row in states:
            if row["state"] is not None and row["state"].startswith("idle in transaction"):
                self.longest_idle = max(self.longest_idle, row["oldest"])
                self.stuck += row["oldest"] > STUCK_SECONDS

    def footprints(self) -> list[Footprint]:
        """Of the process of each replica that lived to the end."""
        found = []
        for replica in self.here.replicas:
            samples = self._samples.get((replica.name, replica.starts), [])
            if samples:
                found.append(_quarters(replica.name, samples))
        return found


def _quarters(name: str, samples: list[Sample]) -> Footprint:
    first, last = samples[0].begun, samples[-1].begun
    warm = first + WARM_UP * (last - first)
    quarter = (last - warm) / 4
    early = [one.rss for one in samples if warm <= one.begun <= warm + quarter]
    late = [one.rss for one in samples if one.begun >= last - quarter]
    return Footprint(
        replica=name,
        samples=len(samples),
        first_quarter=median(early or [samples[0].rss]),
        last_quarter=median(late),
        peak=max(one.rss for one in samples),
        files=samples[-1].files,
    )


async def quiet(url: str, seconds: float) -> float | None:
    """Wait until no run is RUNNING; gives how long that took, ``None`` when some still were after ``seconds``."""
    began = time.monotonic()
    connection = await asyncpg.connect(url.replace("+asyncpg", ""), timeout=10, command_timeout=10)
    try:
        while await connection.fetchval("SELECT count(*) FROM diagnosis_run WHERE status = 'RUNNING'"):
            if time.monotonic() - began > seconds:
                return None
            await asyncio.sleep(0.2)
        return time.monotonic() - began
    finally:
        await connection.close()
