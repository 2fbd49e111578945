"""Where the time of the product goes: the functions of its hot path, by their own time."""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import re
import sqlite3
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import parse_qs, urlsplit

from bench.measuring import Work, at_once
from bench.product import Product, on_postgres, on_sqlite
from bench.servers import own_postgres

HotPath: TypeAlias = Literal["recording", "reading"]
Database: TypeAlias = Literal["postgres", "sqlite"]

CONCURRENCY: Final = 16
TOP: Final = 25

_LOGGED: Final = re.compile(r"LOG:  (?:statement|execute [^:]*): ((?:.|\n\t)*)")

_PARTS: Final = (
    ("sockets and polling", r"select\.|'(poll|control)' of 'select|_socket\.socket|selectors\.py"),
    ("cleaning and redaction", r"/core/(text|redaction)\b|re\.Pattern|unicodedata"),
    ("rows and models (cattrs, attrs)", r"cattrs|/attr/|<attrs|/adapters/rows\.py|/core/model\.py"),
    ("casenotes' other code", r"/(src|casenotes)/(core|adapters|ports|entrypoints)/"),
    ("SQLAlchemy", r"sqlalchemy|greenlet"),
    ("the driver", r"asyncpg|aiosqlite|_sqlite3|sqlite3"),
    ("JSON", r"json"),
    ("this benchmark", r"/bench/"),
    ("asyncio", r"asyncio|_asyncio|_queue\.SimpleQueue|contextvars|_contextvars"),
)


def profile(path: HotPath, database: Database, units: int) -> str:
    """What a run (or a trace) costs on the event loop's thread: part by part, then function by function.

    The clock is the thread's own: what it waited for, or was pushed aside by, is not in it, nor what other threads
    do. A profile slows what it looks at, calls of many small functions most: read the shares, not the sums.
    """
    return asyncio.run(_profile(path, database, units))


async def _profile(path: HotPath, database: Database, units: int) -> str:
    asked = await _statements(path, database)
    async with _product(database) as product:
        work = _work(product, path)
        await product.fill()
        await at_once(work, range(units), CONCURRENCY)
        plain = await _cpu(work, units)
        profiler = cProfile.Profile(time.thread_time)
        profiler.enable()
        slowed = await _cpu(work, units)
        profiler.disable()
    return _told(f"{path} on {database}", pstats.Stats(profiler), units, plain, slowed, asked)


def _work(product: Product, path: HotPath) -> Work:
    return product.record if path == "recording" else product.trace


async def _cpu(work: Work, units: int) -> float:
    """The seconds for which this thread was at work, and not waiting or pushed aside."""
    began = time.thread_time()
    await at_once(work, range(units), CONCURRENCY)
    return time.thread_time() - began


@asynccontextmanager
async def _product(database: Database) -> AsyncIterator[Product]:
    if database == "postgres":
        with own_postgres() as url:
            async with on_postgres(url) as product:
                yield product
    else:
        with tempfile.TemporaryDirectory() as folder:
            async with on_sqlite(Path(folder) / "profile.db") as product:
                yield product


async def _statements(path: HotPath, database: Database) -> Counter[str]:
    """The statements that the database is given for one unit, by their first words."""
    heard = _postgres_heard if database == "postgres" else _sqlite_heard
    async with heard() as (product, take):
        await product.fill()
        await _work(product, path)(0)
        take()
        await _work(product, path)(0)
        return Counter(map(_in_short, take()))


Take: TypeAlias = Callable[[], Sequence[str]]
"""Gives the statements since it was last called."""


@asynccontextmanager
async def _sqlite_heard() -> AsyncIterator[tuple[Product, Take]]:
    """The product, and what its connections are asked, whoever opens them."""
    seen: list[str] = []
    connect = sqlite3.connect

    def heard(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)
        connection.set_trace_callback(seen.append)
        return connection

    def take() -> Sequence[str]:
        taken = seen[:]
        seen.clear()
        return taken

    sqlite3.connect = heard  # type: ignore[assignment]
    try:
        async with _product("sqlite") as product:
            yield product, take
    finally:
        sqlite3.connect = connect


@asynccontextmanager
async def _postgres_heard() -> AsyncIterator[tuple[Product, Take]]:
    """The product, and what its server has in its log."""
    with own_postgres("log_statement=all") as url:
        log, read = Path(parse_qs(urlsplit(url).query)["host"][0]) / "log", 0

        def take() -> Sequence[str]:
            nonlocal read
            written = log.read_text()
            new, read = written[read:], len(written)
            return [found.group(1) for found in _LOGGED.finditer(new)]

        async with on_postgres(url) as product:
            yield product, take


def _in_short(statement: str) -> str:
    found = re.match(r"\s*(INSERT INTO \w+|UPDATE \w+|SELECT\b.*?\bFROM\s+\w+|\w+)", statement, re.DOTALL)
    return re.sub(
        r"(?s)SELECT\b.*FROM\s+", "SELECT ... FROM ", statement if found is None else found.group(1)
    )


def _told(what: str, stats: Any, units: int, plain: float, slowed: float, asked: Counter[str]) -> str:
    rows = [(own, calls, place) for place, (_, calls, own, _, _) in stats.stats.items()]
    total = sum(own for own, _, _ in rows)
    parts: dict[str, float] = defaultdict(float)
    for place, (_, _, own, _, callers) in stats.stats.items():
        part = _part(place)
        if part is not None:
            parts[part] += own
            continue
        for caller, (_, _, of_caller, _) in callers.items():  # what is built in belongs to who called it
            parts[_part(caller) or "others"] += of_caller
    each = 1_000 / units
    lines = [
        f"{what}: {units} units, {CONCURRENCY} at a time; {plain * each:.2f} ms of CPU each,"
        f" {slowed * each:.2f} while profiled",
        f"statements of a unit: {asked.total()}",
        *(f"  {number:4} {words}" for words, number in asked.most_common()),
        "",
        "| part | share | of the ms of CPU |",
        "|---|---:|---:|",
        *(
            f"| {part} | {own / total:.0%} | {own / total * plain * each:.2f} |"
            for part, own in sorted(parts.items(), key=lambda each: -each[1])
        ),
        "",
        "| own time | ms a unit | calls a unit | function |",
        "|---:|---:|---:|---|",
    ]
    for own, calls, place in sorted(rows, reverse=True)[:TOP]:
        lines.append(f"| {own / total:.1%} | {own * each:.3f} | {calls / units:.0f} | {_name(place)} |")
    return "\n".join(lines)


def _part(place: tuple[str, int, str]) -> str | None:
    name = f"{place[0]} {place[2]}"
    return next((part for part, pattern in _PARTS if re.search(pattern, name)), None)


def _name(place: tuple[str, int, str]) -> str:
    file, line, function = place
    short = re.sub(r"^.*/(?:site-packages|lib/python[\d.]+)/", "", file)
    short = re.sub(r"^.*/src/", "casenotes/", short)
    return f"`{function}`" if file == "~" else f"`{short}:{line} {function}`"
