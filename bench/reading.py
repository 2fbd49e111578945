"""Reading: the trace of a session's latest run, beside the statements that fetch the same rows by hand."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Final

from bench import work
from bench.measuring import Comparison, Figure, Load, at_least, at_most, in_turns
from bench.postgres_floor import PostgresFloor
from bench.product import on_postgres, on_sqlite
from bench.sqlite_floor import SqliteFloor

POSTGRES: Final = at_least(0.6)
SQLITE: Final = at_most(1, absolute=True)


async def postgres(url: str, seconds: float, repetitions: int) -> list[Comparison]:
    """Traces in a second, one and 16 at once."""
    found = []
    async with on_postgres(url) as product:
        evaluation = await product.fill()
        for concurrency in (1, 16):
            connections = min(concurrency, 8)
            async with PostgresFloor.open(url, connections, evaluation) as floor:
                floors, products = Load(floor.trace, concurrency), Load(product.trace, concurrency)
                await floors.warm_up(seconds)
                await products.warm_up(seconds)
                pairs = await in_turns(floors.rate, products.rate, repetitions)
            what = f"trace: postgres, {concurrency} at once"
            by = f"asyncpg, 4 statements, {connections} connections"
            found.append(Comparison(what, "traces/s", *pairs, POSTGRES, floor_is=by))
    return found


async def sqlite(folder: Path, seconds: float, repetitions: int) -> list[Comparison]:
    """How long a trace takes."""
    file = folder / "reading.db"
    async with on_sqlite(file) as product:
        evaluation = await product.fill()
        with SqliteFloor.open(file, evaluation) as floor:
            products = Load(product.trace, 1)
            await products.warm_up(seconds)
            _median_ms(floor, seconds)

            async def floors() -> Figure:
                return _median_ms(floor, seconds)

            pairs = await in_turns(floors, products.median_ms, repetitions)
    what = f"trace: sqlite, {work.STEPS}+{work.TOOLS} rows"
    return [Comparison(what, "p50 ms", *pairs, SQLITE, floor_is="sqlite3, 4 statements")]


def _median_ms(floor: SqliteFloor, seconds: float) -> Figure:
    times: list[float] = []
    end, cpu = time.perf_counter() + seconds, time.process_time()
    while not times or time.perf_counter() < end:
        began = time.perf_counter()
        floor.trace(len(times))
        times.append((time.perf_counter() - began) * 1_000)
    return Figure(statistics.median(times), (time.process_time() - cpu) / len(times) * 1_000)
