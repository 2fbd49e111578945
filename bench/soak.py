"""A soak: mixed traffic on two replicas while parts of the installation die; then all that was told is asked for again.

    make soak [ARGS="--requests 20000 --concurrency 16 --seed 1 --json build/soak.json"]

Two processes of ``casenotes serve`` share a PostgreSQL as durable as by default and a Redis, all started for it. On
the way one replica is killed and started again, PostgreSQL is restarted, and Redis is replaced by an empty one. Clients
turn to the other replica and try again where that is safe. The exit status is 1 when anything that was told was lost
or mixed, when a row does not fit the others, when a request failed though nothing was wrong, or when memory grew.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

from aiohttp import ClientSession, TCPConnector
from attrs import define, field

from bench import report as bench_report
from bench.soaking.calls import CallLog, Fleet
from bench.soaking.faults import Faulty, Progress, go_wrong
from bench.soaking.gauges import Gauges, quiet
from bench.soaking.installation import Installation, installed
from bench.soaking.judging import Judge, verified
from bench.soaking.remembered import Memory
from bench.soaking.report import Soak, calm_errors
from bench.soaking.traffic import Traffic, drive


@define
class Course:
    """How a soak went, as far as it came."""

    began: float = field(factory=time.monotonic)
    driven: float | None = None
    quiet_after: float | None = None
    verify: str = "was not asked"


async def soak(here: Installation, asked: Namespace) -> Soak:
    """Drive, break, wait, judge; whatever was found by the deadline is told."""
    progress, faulty, memory, log, course = Progress(asked.requests), Faulty(), Memory(), CallLog(), Course()
    gauges = Gauges(here, progress)
    watching = asyncio.create_task(gauges.watch())
    try:
        async with ClientSession(connector=TCPConnector(limit=0)) as http:
            urls = [replica.url for replica in here.replicas]
            fleet = Fleet(urls, http, faulty, log, Random(asked.seed + 1))
            traffic = Traffic(fleet, memory, progress, Random(asked.seed))
            async with asyncio.timeout(asked.deadline) as deadline:
                await follow(course, here, traffic, Judge(fleet, memory), asked.concurrency)
    except TimeoutError:
        if not deadline.expired():
            raise
        memory.wrong.append(f"the soak did not end in {asked.deadline:g} s")
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    memory.wrong += calm_errors(log)
    memory.require(not gauges.stuck, f"{gauges.stuck} transactions were forgotten")
    for one in gauges.footprints():
        memory.require(not one.grew, f"memory of {one.replica} grew to {one.last_quarter:.1f} MB")
    ended = time.monotonic()
    driven = ended if course.driven is None else course.driven
    conversations = memory.conversations.values()
    return Soak(
        machine=bench_report.machine(),
        asked={"requests": asked.requests, "concurrency": asked.concurrency, "seed": asked.seed},
        requests=progress.begun,
        seconds=driven - course.began,
        quiet_after=course.quiet_after,
        judged_seconds=ended - driven,
        faults=faulty.names,
        log=log,
        gauges=gauges,
        conversations=len(conversations),
        erased=sum(one.erased is not None for one in conversations),
        runs=Counter(str(told.status) for one in conversations for told in one.told),
        feedbacks=sum(len(one.rated) for one in conversations),
        degraded_contexts=traffic.degraded_contexts,
        errors_logged=errors_logged(here),
        verify=course.verify,
        wrong=memory.wrong,
    )


async def follow(
    course: Course, here: Installation, traffic: Traffic, judge: Judge, concurrency: int
) -> None:
    """All of it, in order."""
    async with asyncio.TaskGroup() as group:
        group.create_task(go_wrong(here, traffic.progress, traffic.fleet.faulty))
        group.create_task(drive(traffic, concurrency))
    course.driven = time.monotonic()
    course.quiet_after = await quiet(here.ledger, 3 * here.lease + 10)
    judge.memory.require(course.quiet_after is not None, "runs are RUNNING though their leases have expired")
    await judge.hear_all(concurrency)
    await judge.hold_rows(here.ledger)
    sound, course.verify = await verified(here.ledger)
    judge.memory.require(sound, f"casenotes verify: {course.verify}")


def errors_logged(here: Installation) -> Counter[str]:
    """What the replicas logged as errors; a line that is not of the log at all counts as one."""
    found = Counter[str]()
    for replica in here.replicas:
        for line in replica.process.log.splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                found["what is not JSON"] += 1
                continue
            if entry.get("level") in ("error", "critical"):
                found[f"{entry['event']}: {entry.get('doing', '')}"] += 1
    return found


def main() -> int:
    parser = ArgumentParser(prog="python -m bench.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lease", type=float, default=5.0, help="seconds of CASENOTES_RUN_LEASE (5)")
    parser.add_argument("--deadline", type=float, default=3600.0, help="seconds for all of it (3600)")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # all that was started is ended on the way out
    with (
        tempfile.TemporaryDirectory(prefix="casenotes-soak-", dir="/tmp") as folder,
        installed(Path(folder), asked.lease) as here,
    ):
        found = asyncio.run(soak(here, asked))
    print(found.text())
    if asked.json is not None:
        found.write(asked.json)
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
