"""At any size: the same reads and the same feedback, among a thousand runs and among very many.

The rows are put into the tables by statements of their own, for through the service a million runs would take hours;
their shape is that of recorded ones. Few and many are read in turns, in sessions drawn by lot that were read before.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from attrs import frozen

from bench import scale_fill, work
from bench.measuring import Comparison, Figure, Goal, Spoilt, at_most, in_turns, times_of
from bench.product import Product, on_postgres, on_sqlite
from bench.scale_fill import BUSY, CALM, FEW, RUNS_IN_SESSION, session_id
from casenotes.core.service.feedback import FeedbackDesk
from casenotes.core.words import Rating
from casenotes.entrypoints.ambient import utc_now

SERVER: Final = (
    "max_wal_size=8GB",
    "shared_buffers=1GB",
    "maintenance_work_mem=512MB",
    "checkpoint_timeout=30min",
)
"""Room for what is loaded. Nothing here makes a commit less durable."""

FLAT: Final = at_most(1.2)
UNITS: Final = 200
"""How many reads make a figure."""

Act: TypeAlias = Callable[[Product, str], Awaitable[object]]


async def _trace(product: Product, session: str) -> object:
    trace = await product.reading.trace(session)
    if (len(trace.agent_steps), len(trace.tool_invocations)) != (work.STEPS, work.TOOLS):
        raise Spoilt("another run was read than was put there")
    return trace


async def _runs(product: Product, session: str) -> object:
    found = await product.reading.runs(session)
    if len(found) != RUNS_IN_SESSION:
        raise Spoilt("another session was read than was put there")
    return found


async def _latest(product: Product, session: str) -> object:
    async with product.ledger.view() as view:
        found = await view.runs.latest(session)
    if found is None:
        raise Spoilt("no run was found")
    return found


async def _sessions(product: Product, _: str) -> object:
    return await product.reading.sessions(limit=50)


async def _feedback(product: Product, session: str) -> object:
    return await FeedbackDesk(product.ledger, utc_now).give(session, Rating.USEFUL)


ACTS: Final[Mapping[str, tuple[Act, Goal | None]]] = {
    "trace": (_trace, FLAT),
    "run list": (_runs, FLAT),
    "latest run": (_latest, FLAT),
    "feedback": (_feedback, FLAT),
    "session list": (_sessions, None),
}


@frozen
class Record:
    """The product over a record, and the sessions that are read in it."""

    product: Product
    sessions: Sequence[str]

    @classmethod
    def of(cls, product: Product, runs: int) -> Record:
        drawn = random.Random(work.SEED)
        return cls(product, [session_id(drawn.randrange(runs // RUNS_IN_SESSION)) for _ in range(UNITS)])

    async def median_ms(self, act: Act) -> Figure:
        """The median of the act's times in the sessions, one after the other."""

        async def one(number: int) -> None:
            await act(self.product, self.sessions[number])

        cpu = time.process_time()
        times = await times_of(one, range(len(self.sessions)), 1)
        return Figure(statistics.median(times), (time.process_time() - cpu) / len(times) * 1_000)


async def postgres(url: str, runs: int, repetitions: int) -> list[Comparison]:
    """On a server that has this URL, in databases of its own."""
    few_url, many_url = await scale_fill.postgres_databases(url)
    for filled, number in ((few_url, FEW), (many_url, runs)):
        async with on_postgres(filled):
            pass
        began = time.monotonic()
        size = await scale_fill.fill_postgres(filled, number)
        took = time.monotonic() - began
        print(f"postgres: {number:,} runs, {size / 1e9:.1f} GB, put there in {took:.0f} s", flush=True)
    async with on_postgres(few_url) as few, on_postgres(many_url) as many:
        found = await _compared("postgres", Record.of(few, FEW), Record.of(many, runs), runs, repetitions)
    await scale_fill.drop_postgres_databases(url)
    return found


async def sqlite(folder: Path, runs: int, repetitions: int) -> list[Comparison]:
    """In files in this folder."""
    few_file, many_file = folder / "few.db", folder / "many.db"
    async with on_sqlite(few_file) as few, on_sqlite(many_file) as many:
        for file, number in ((few_file, FEW), (many_file, runs)):
            began = time.monotonic()
            scale_fill.fill_sqlite(file, number)
            took, size = time.monotonic() - began, file.stat().st_size
            print(f"sqlite: {number:,} runs, {size / 1e9:.2f} GB, put there in {took:.0f} s", flush=True)
        found = await _compared("sqlite", Record.of(few, FEW), Record.of(many, runs), runs, repetitions)
    few_file.unlink()
    many_file.unlink()
    return found


async def _compared(
    database: str, few: Record, many: Record, runs: int, repetitions: int
) -> list[Comparison]:
    found = []
    for name, (act, goal) in ACTS.items():
        what = f"{database}: {name} among {runs:,} runs"
        found.append(await _pair(what, act, few, many, f"the same among {FEW:,} runs", goal, repetitions))
    calm, busy = (Record(many.product, [session] * UNITS) for session in (CALM, BUSY))
    what = f"{database}: latest of {scale_fill.RUNS_OF[BUSY]:,} runs of a session"
    by = f"the latest of {scale_fill.RUNS_OF[CALM]} runs of a session"
    found.append(await _pair(what, _latest, calm, busy, by, FLAT, repetitions))
    return found


async def _pair(
    what: str, act: Act, floor: Record, product: Record, by: str, goal: Goal | None, repetitions: int
) -> Comparison:
    async def of_floor() -> Figure:
        return await floor.median_ms(act)

    async def of_product() -> Figure:
        return await product.median_ms(act)

    await of_floor()
    await of_product()
    pairs = await in_turns(of_floor, of_product, repetitions)
    return Comparison(what, "p50 ms", *pairs, goal, floor_is=by)
