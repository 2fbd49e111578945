"""The table, and the figures as JSON."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.measuring import AS_IT_IS, Comparison, Figure, Goal

COMMITS = "commits_per_second_before_each_part"

_HEAD = ("what", "unit", "floor", "product", "ratio: median (min..max)", "goal", "holds")
_WORDS = {True: "yes", False: "NO", None: ""}


def text(comparisons: Sequence[Comparison]) -> str:
    """A table and a verdict for each disk; what the CPU took, for the disk as it is."""
    told = []
    for disk, found in groupby(comparisons, key=lambda each: each.disk):
        there = list(found)
        if disk == AS_IT_IS:
            told += [table(there), cpu_table(there), verdict(there)]
        else:
            told += [f"On a disk of {disk}:", table(there), verdict(there)]
    return "\n\n".join(told)


def table(comparisons: Sequence[Comparison]) -> str:
    """The comparisons as a Markdown table that can be read as it is."""
    return _table(_HEAD, list(map(_row, comparisons)))


def cpu_table(comparisons: Sequence[Comparison]) -> str:
    """What a unit takes of the CPU of the process that measures, the databases' own aside: no other load is in it."""
    rows = []
    for each in comparisons:
        sides = [
            [one.cpu_ms for one in side if one.cpu_ms is not None] for side in (each.floor, each.product)
        ]
        if each.cpu_tells and all(sides):
            floor, product = map(statistics.median, sides)
            rows.append((each.what, f"{floor:.3g}", f"{product:.3g}", f"{product / floor:.1f}"))
    return _table(("CPU, ms a unit", "floor", "product", "ratio"), rows)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in (head, *rows)]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def verdict(comparisons: Sequence[Comparison]) -> str:
    """How many goals hold, and which do not."""
    judged = [each for each in comparisons if each.goal is not None]
    missed = [each.what for each in judged if not each.holds]
    end = "." if not missed else ":" + "".join(f"\n  missed: {what}" for what in missed)
    return f"{len(judged) - len(missed)} of {len(judged)} goals hold{end}"


def machine() -> dict[str, object]:
    """What the figures were taken on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "load_average": round(os.getloadavg()[0], 2),
    }


def commits_per_second(folder: Path, seconds: float = 0.5) -> float:
    """How many commits of one row a single writer gets onto this disk now: SQLite, WAL, synchronous FULL."""
    with closing(sqlite3.connect(folder / "disk.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS row (text TEXT)")
        commits, began = 0, time.perf_counter()
        while not commits or (taken := time.perf_counter() - began) < seconds:
            connection.execute("INSERT INTO row VALUES (?)", ("x" * 600,))
            commits += 1
    return round(commits / taken)


def write(file: Path, comparisons: Sequence[Comparison], facts: dict[str, object]) -> None:
    """All figures, repetition by repetition."""
    found = [
        {
            "what": each.what,
            "disk": each.disk,
            "unit": each.unit,
            "floor": list(map(_plain, each.floor)),
            "floor_is": each.floor_is,
            "product": list(map(_plain, each.product)),
            "ratio": [round(one, 3) for one in each.ratios],
            "goal": None if each.goal is None else str(each.goal),
            "holds": each.holds,
            "cpu_tells": each.cpu_tells,
            "flushes": each.flushes,
        }
        for each in comparisons
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"machine": facts, "comparisons": found}, indent=2) + "\n")


def read(file: Path) -> tuple[list[Comparison], list[float]]:
    """The comparisons that were written there, and the commits in a second before each part."""
    told = json.loads(file.read_text())
    return list(map(_comparison, told["comparisons"])), list(told["machine"][COMMITS].values())


def _comparison(told: Mapping[str, Any]) -> Comparison:
    floor, product = ([Figure(**each) for each in told[side]] for side in ("floor", "product"))
    goal = None if told["goal"] is None else Goal.parse(told["goal"])
    named = {name: told[name] for name in ("floor_is", "cpu_tells", "flushes", "disk")}
    return Comparison(told["what"], told["unit"], floor, product, goal, **named)


def _row(each: Comparison) -> tuple[str, ...]:
    ratios = each.ratios
    spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}..{max(ratios):.2f})" if ratios else ""
    return (
        each.what,
        each.unit,
        _figure(each.floor),
        _figure(each.product),
        spread,
        "" if each.goal is None else str(each.goal),
        _WORDS[each.holds],
    )


def _figure(figures: Sequence[Figure]) -> str:
    if not figures:
        return ""
    median = statistics.median(each.value for each in figures)
    return f"{median:,.0f}" if median >= 100 else f"{median:.3g}"


def _plain(figure: Figure) -> dict[str, float]:
    told = {"value": figure.value} | ({} if figure.cpu_ms is None else {"cpu_ms": figure.cpu_ms})
    return {name: float(f"{value:.5g}") for name, value in told.items()}
