"""Floor and product in turns: each figure of the product stands beside one of the floor, taken at the same time."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Literal, TypeAlias, cast

from attrs import field, frozen

Work: TypeAlias = Callable[[int], Awaitable[None]]
"""Does the unit of work that has this number."""

AS_IT_IS: Final = "as it is"
"""The disk that the machine has."""


class Spoilt(Exception):
    """A measure means nothing: not what was to be done was done."""


@frozen
class Figure:
    """What was measured, and the milliseconds of this process's CPU that a unit took, where that tells something."""

    value: float
    cpu_ms: float | None = None


Measure: TypeAlias = Callable[[], Awaitable[Figure]]
"""Works for a while and gives a figure."""


@frozen
class Goal:
    """What a ratio, or with ``absolute`` the product's own figure, must at least or at most be."""

    relation: Literal[">=", "<="]
    bound: float
    absolute: bool = False

    def holds(self, value: float) -> bool:
        return value >= self.bound if self.relation == ">=" else value <= self.bound

    @classmethod
    def parse(cls, text: str) -> Goal:
        """What was told as text."""
        judged, relation, bound = text.split()
        return cls(cast(Literal[">=", "<="], relation), float(bound), judged == "product")

    def __str__(self) -> str:
        return f"{'product' if self.absolute else 'ratio'} {self.relation} {self.bound:g}"


def at_least(bound: float) -> Goal:
    return Goal(">=", bound)


def at_most(bound: float, *, absolute: bool = False) -> Goal:
    return Goal("<=", bound, absolute)


@frozen
class Comparison:
    """The figures of one thing that was measured, one of each side for each repetition."""

    what: str
    unit: str
    floor: Sequence[Figure]
    product: Sequence[Figure]
    goal: Goal | None = None
    floor_is: str = field(default="", kw_only=True)
    cpu_tells: bool = field(default=True, kw_only=True)
    """Whether both did their work in this process, so that its CPU can be compared."""
    flushes: int = field(default=0, kw_only=True)
    """What a unit's milliseconds cannot be less than: so many flushes of the disk, one after the other."""
    disk: str = field(default=AS_IT_IS, kw_only=True)

    @property
    def ratios(self) -> Sequence[float]:
        """Product to floor, pair by pair; none where there is no floor."""
        if not self.floor:
            return []
        return [product.value / floor.value for floor, product in zip(self.floor, self.product, strict=True)]

    @property
    def holds(self) -> bool | None:
        """Whether the median keeps to the goal; ``None`` where there is none."""
        if self.goal is None:
            return None
        judged = [each.value for each in self.product] if self.goal.absolute else self.ratios
        return self.goal.holds(statistics.median(judged))


@frozen
class Measured:
    """What came of a part, and how many commits a second the disk did before it."""

    comparisons: Sequence[Comparison]
    commits_per_second: float


Pairs: TypeAlias = tuple[Sequence[Figure], Sequence[Figure]]


async def in_turns(floor: Measure, product: Measure, repetitions: int) -> Pairs:
    """The figures of both; who begins changes from pair to pair, so that a drift of the machine favours neither."""
    floors: list[Figure] = []
    products: list[Figure] = []
    for repetition in range(repetitions):
        pair = [(floor, floors), (product, products)]
        for measure, figures in pair if repetition % 2 == 0 else reversed(pair):
            gc.collect()
            figures.append(await measure())
    return floors, products


async def at_once(work: Work, numbers: Iterable[int], concurrency: int) -> None:
    """Do these units, so many at a time."""
    waiting = iter(numbers)

    async def worker() -> None:
        for number in waiting:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(worker())


async def times_of(work: Work, numbers: Iterable[int], concurrency: int) -> Sequence[float]:
    """How many milliseconds each unit took, so many at a time."""
    times: list[float] = []

    async def timed(number: int) -> None:
        began = time.perf_counter()
        await work(number)
        times.append((time.perf_counter() - began) * 1_000)

    await at_once(timed, numbers, concurrency)
    return times


class Load:
    """Units of work, numbered on and on, so many at a time and as many as fill the seconds wanted."""

    def __init__(self, work: Work, concurrency: int, *, first: int = 0) -> None:
        self._work = work
        self._concurrency = concurrency
        self._next = first
        self._units = concurrency

    async def warm_up(self, seconds: float) -> Figure:
        """Work a little, which settles how much is done for a figure; gives the units in a second."""
        found = await self.rate()
        self._units = self._concurrency * max(1, round(found.value * seconds / self._concurrency))
        return found

    async def rate(self) -> Figure:
        """Units in a second."""
        began, cpu = time.perf_counter(), time.process_time()
        await at_once(self._work, self._numbers(), self._concurrency)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        return Figure(self._units / seconds, cpu / self._units * 1_000)

    async def median_ms(self) -> Figure:
        """The median of the units' times, in milliseconds."""
        cpu = time.process_time()
        times = await times_of(self._work, self._numbers(), self._concurrency)
        return Figure(statistics.median(times), (time.process_time() - cpu) / self._units * 1_000)

    def _numbers(self) -> range:
        numbers = range(self._next, self._next + self._units)
        self._next += self._units
        return numbers
