"""``python -m bench``: casenotes beside the same work written by hand, in turns, and a table of what came of it."""

from __future__ import annotations

import asyncio
import math
import sys
import tempfile
import time
import traceback
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from bench import light, profiling, reading, recording, report, scale, service
from bench.measuring import Comparison, Measured
from bench.servers import own_postgres, own_valkey
from bench.slow_disk import SlowDisk, Unavailable

PARTS: Final = (
    "record-postgres",
    "record-sqlite",
    "trace-postgres",
    "trace-sqlite",
    "http-postgres",
    "http-sqlite",
    "chat",
    "import",
    "memory",
)
ON_SLOW_DISK: Final = ("record-postgres", "record-sqlite", "chat")

Work: TypeAlias = Callable[[], Coroutine[Any, Any, list[Comparison]]]
"""Compares in this process."""
Part: TypeAlias = Callable[[], Measured]
"""Compares here or elsewhere, and says how quick the disk was before."""


def main() -> int:
    asked = _asked()
    match asked.command:
        case "profile":
            print(profiling.profile(asked.path, asked.database, asked.units))
            return 0
        case "scale":
            return _scale(asked)
        case _:
            return _compare(asked)


def _asked() -> Namespace:
    parser = ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measure; 1")
    parser.add_argument("--repetitions", type=_one_or_more, default=5, help="pairs of measures; 5")
    parser.add_argument(
        "--flush-ms",
        type=_none_or_more,
        default=2.0,
        help="what writes is measured once more, on a disk whose flush takes this long; 2 (0: it is not)",
    )
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS)
    )
    _outcome(parser, "build/bench.json")
    commands = parser.add_subparsers(dest="command", title="other measurements")

    profile = commands.add_parser("profile", help="where the time of recording or reading goes")
    profile.add_argument("path", choices=("recording", "reading"))
    profile.add_argument("--database", choices=("postgres", "sqlite"), default="postgres")
    profile.add_argument("--units", type=_one_or_more, default=200, help="runs, or traces; 200")

    sizes = commands.add_parser("scale", help="reading and feedback among few runs and among many")
    sizes.add_argument("--runs", type=int, default=1_000_000, help="on Postgres; 1,000,000 (0: not there)")
    sizes.add_argument("--sqlite-runs", type=int, default=100_000, help="on SQLite; 100,000 (0: not there)")
    sizes.add_argument("--repetitions", type=_one_or_more, default=5, help="pairs of measures; 5")
    _outcome(sizes, "build/bench-scale.json")
    return parser.parse_args()


def _one_or_more(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ArgumentTypeError("at least 1")
    return number


def _none_or_more(text: str) -> float:
    number = float(text)
    if not 0 <= number < math.inf:
        raise ArgumentTypeError("at least 0")
    return number


def _outcome(parser: ArgumentParser, default: str) -> None:
    parser.add_argument("--out", type=Path, default=Path(default), help=f"the figures as JSON; {default}")
    parser.add_argument("--strict", action="store_true", help="exit 1 unless every goal holds")


class Servers:
    """Servers that are started when they are first wanted."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    @cached_property
    def postgres(self) -> str:
        return self._stack.enter_context(own_postgres())

    @cached_property
    def valkey(self) -> str:
        return self._stack.enter_context(own_valkey())


def _compare(asked: Namespace) -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="casenotes-bench-")))
        servers = Servers(stack)
        measured = (asked.seconds, asked.repetitions)
        works: Mapping[str, Work] = {
            "record-postgres": lambda: recording.postgres(servers.postgres, *measured),
            "record-sqlite": lambda: recording.sqlite(folder, *measured),
            "trace-postgres": lambda: reading.postgres(servers.postgres, *measured),
            "trace-sqlite": lambda: reading.sqlite(folder, *measured),
            "http-postgres": lambda: service.postgres_trace(
                servers.postgres, servers.valkey, folder, *measured
            ),
            "http-sqlite": lambda: service.sqlite_trace(folder, *measured),
            "chat": lambda: service.chat(servers.postgres, servers.valkey, folder, *measured),
            "import": lambda: light.imported(asked.repetitions),
            "memory": lambda: light.resident(folder),
        }
        parts = _here({name: work for name, work in works.items() if name in asked.only}, folder)
        return _reported(asked, {**parts, **_on_slow_disk(asked, folder)})


def _here(works: Mapping[str, Work], folder: Path) -> Mapping[str, Part]:
    """Parts that are measured by this process, on the disk of this folder."""

    def measured(work: Work) -> Measured:
        commits = report.commits_per_second(folder)
        return Measured(asyncio.run(work()), commits)

    return {name: partial(measured, work) for name, work in works.items()}


def _on_slow_disk(asked: Namespace, folder: Path) -> Mapping[str, Part]:
    """The parts that write, once more; none, and a line that says why, where a disk cannot be slowed."""
    names = [name for name in ON_SLOW_DISK if name in asked.only]
    if not names or asked.flush_ms == 0:
        return {}
    try:
        disk = SlowDisk.compiled(folder, asked.flush_ms)
    except Unavailable as reason:
        print(f"writing on a disk of {asked.flush_ms:g} ms a flush is left out: {reason}")
        return {}
    return {
        f"{name}, {disk}": partial(disk.measured, name, asked.seconds, asked.repetitions) for name in names
    }


def _scale(asked: Namespace) -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="casenotes-bench-")))
        works: dict[str, Work] = {}
        if asked.runs:
            url = stack.enter_context(own_postgres(*scale.SERVER))
            works["postgres"] = lambda: scale.postgres(url, asked.runs, asked.repetitions)
        if asked.sqlite_runs:
            works["sqlite"] = lambda: scale.sqlite(folder, asked.sqlite_runs, asked.repetitions)
        return _reported(asked, _here(works, folder))


def _reported(asked: Namespace, parts: Mapping[str, Part]) -> int:
    """Measure part by part; 1 when one could not be measured, or when a goal was missed and that was to be strict."""
    facts = report.machine()
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    found: list[Comparison] = []
    commits: dict[str, float] = {}
    spoilt: list[str] = []
    for name, part in parts.items():
        began = time.monotonic()
        try:
            measured = part()
        except Exception:
            traceback.print_exc()
            spoilt.append(name)
            continue
        found += measured.comparisons
        commits[name] = measured.commits_per_second
        took = time.monotonic() - began
        print(f"{name}: {took:.0f} s; before it the disk did {commits[name]:,.0f} commits/s", flush=True)
    print(f"\n{report.text(found)}\n")
    report.write(asked.out, found, facts | {report.COMMITS: commits})
    print(f"all figures: {asked.out}")
    if spoilt:
        print(f"could not be measured: {', '.join(spoilt)}")
    return int(bool(spoilt) or (asked.strict and any(each.holds is False for each in found)))


if __name__ == "__main__":
    sys.exit(main())
