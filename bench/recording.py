"""Recording: runs with their facts, each durable before the next, beside the same rows written by hand."""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Final

from bench import work
from bench.measuring import Comparison, Figure, Goal, Load, Pairs, at_least, at_most, in_turns
from bench.postgres_floor import PostgresFloor
from bench.product import on_postgres, on_sqlite
from bench.sqlite_floor import SqliteFloor

ALONE: Final = at_most(1.3)
FLUSHES: Final = work.STEPS + work.TOOLS
"""Of a run alone: each fact waits for one before the next is recorded."""

POSTGRES: Final[Mapping[int, Goal]] = {1: ALONE, 16: at_least(0.8), 64: at_least(1.5)}
SQLITE: Final[Mapping[int, Goal]] = {1: ALONE, 16: at_least(5)}
"""Goals by how many runs are recorded at once."""


async def postgres(url: str, seconds: float, repetitions: int) -> list[Comparison]:
    """How long a run alone takes, and how many are recorded in a second, many at once."""
    found = []
    numbers = count(0, 1_000_000)
    async with on_postgres(url) as product:
        evaluation = await product.fill()
        for concurrency, goal in POSTGRES.items():
            async with _best_floor(url, evaluation, concurrency, next(numbers)) as (floor, connections):
                floors = Load(floor.record, concurrency, first=next(numbers))
                products = Load(product.record, concurrency)
                await floors.warm_up(seconds)
                await products.warm_up(seconds)
                by = f"asyncpg, {connections} connections, a statement and a commit for each fact"
                if concurrency == 1:
                    pairs = await in_turns(floors.median_ms, products.median_ms, repetitions)
                else:
                    pairs = await in_turns(floors.rate, products.rate, repetitions)
            found.append(_compared("postgres", concurrency, pairs, goal, by))
    return found


@asynccontextmanager
async def _best_floor(
    url: str, evaluation: str, concurrency: int, first: int
) -> AsyncIterator[tuple[PostgresFloor, int]]:
    """The floor with as many connections as serve it best at this concurrency; and how many those are."""
    sizes = sorted({min(concurrency, each) for each in (8, 16, 32, 64)})
    tried: dict[int, float] = {}
    for connections in sizes if len(sizes) > 1 else ():
        async with PostgresFloor.open(url, connections, evaluation) as floor:
            load = Load(floor.record, concurrency, first=first)
            await load.warm_up(0)
            tried[connections] = (await load.rate()).value
            first += 2 * concurrency
    best = max(tried, key=lambda each: tried[each], default=sizes[0])
    async with PostgresFloor.open(url, best, evaluation) as floor:
        yield floor, best


async def sqlite(folder: Path, seconds: float, repetitions: int) -> list[Comparison]:
    """As on Postgres; floor and product have a file each, and are never at work together."""
    found = []
    async with on_sqlite(folder / "product.db") as product, on_sqlite(folder / "floor.db"):
        evaluation = await product.fill()
        with SqliteFloor.open(folder / "floor.db", evaluation) as floor:
            for concurrency, goal in SQLITE.items():
                floors = _SqliteLoad(floor, concurrency, first=concurrency * 1_000_000)
                products = Load(product.record, concurrency)
                await floors.warm_up(seconds)
                await products.warm_up(seconds)
                if concurrency == 1:
                    pairs = await in_turns(floors.median_ms, products.median_ms, repetitions)
                else:
                    pairs = await in_turns(floors.rate, products.rate, repetitions)
                by = "sqlite3, one connection, WAL, synchronous FULL, a commit for each fact"
                found.append(_compared("sqlite", concurrency, pairs, goal, by))
    return found


class _SqliteLoad:
    """``Load`` for the floor, which does not wait for anything but the disk: nothing else is at work meanwhile."""

    def __init__(self, floor: SqliteFloor, concurrency: int, *, first: int) -> None:
        self._floor = floor
        self._concurrency = concurrency
        self._next = first
        self._units = concurrency

    async def warm_up(self, seconds: float) -> None:
        found = await self.rate()
        self._units = self._concurrency * max(1, round(found.value * seconds / self._concurrency))

    async def rate(self) -> Figure:
        numbers = self._numbers()
        began, cpu = time.perf_counter(), time.process_time()
        self._floor.record(numbers, self._concurrency)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        return Figure(len(numbers) / seconds, cpu / len(numbers) * 1_000)

    async def median_ms(self) -> Figure:
        times, cpu = [], time.process_time()
        for number in self._numbers():
            began = time.perf_counter()
            self._floor.record([number], 1)
            times.append((time.perf_counter() - began) * 1_000)
        return Figure(statistics.median(times), (time.process_time() - cpu) / len(times) * 1_000)

    def _numbers(self) -> range:
        numbers = range(self._next, self._next + self._units)
        self._next += self._units
        return numbers


def _compared(database: str, concurrency: int, pairs: Pairs, goal: Goal, floor_is: str) -> Comparison:
    if concurrency == 1:
        what = f"record: {database}, a run alone"
        return Comparison(what, "p50 ms", *pairs, goal, floor_is=floor_is, flushes=FLUSHES)
    return Comparison(
        f"record: {database}, {concurrency} runs at once", "runs/s", *pairs, goal, floor_is=floor_is
    )
