"""``python -m bench``: casenotes beside the same work written by hand, in turns, and a table of what came of it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

from bench import light, profiling, reading, recording, report, scale, service
from bench.measuring import Comparison
from bench.servers import own_postgres, own_valkey

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

Part: TypeAlias = Callable[[], Coroutine[Any, Any, list[Comparison]]]


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
    parser.add_argument("--repetitions", type=int, default=5, help="pairs of measures; 5")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS)
    )
    _outcome(parser, "build/bench.json")
    commands = parser.add_subparsers(dest="command", title="other measurements")

    profile = commands.add_parser("profile", help="where the time of recording or reading goes")
    profile.add_argument("path", choices=("recording", "reading"))
    profile.add_argument("--database", choices=("postgres", "sqlite"), default="postgres")
    profile.add_argument("--units", type=int, default=200, help="runs, or traces; 200")

    sizes = commands.add_parser("scale", help="reading and feedback among few runs and among many")
    sizes.add_argument("--runs", type=int, default=1_000_000, help="on Postgres; 1,000,000 (0: not there)")
    sizes.add_argument("--sqlite-runs", type=int, default=100_000, help="on SQLite; 100,000 (0: not there)")
    sizes.add_argument("--repetitions", type=int, default=5, help="pairs of measures; 5")
    _outcome(sizes, "build/bench-scale.json")
    return parser.parse_args()


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
        parts: Mapping[str, Part] = {
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
        return _reported(asked, {name: part for name, part in parts.items() if name in asked.only}, folder)


def _scale(asked: Namespace) -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="casenotes-bench-")))
        parts: dict[str, Part] = {}
        if asked.runs:
            url = stack.enter_context(own_postgres(*scale.SERVER))
            parts["postgres"] = lambda: scale.postgres(url, asked.runs, asked.repetitions)
        if asked.sqlite_runs:
            parts["sqlite"] = lambda: scale.sqlite(folder, asked.sqlite_runs, asked.repetitions)
        return _reported(asked, parts, folder)


def _reported(asked: Namespace, parts: Mapping[str, Part], folder: Path) -> int:
    """Measure part by part; 1 when one could not be measured, or when a goal was missed and that was to be strict."""
    facts = report.machine()
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    found: list[Comparison] = []
    disk, spoilt = [], []
    for name, part in parts.items():
        disk.append(report.commits_per_second(folder))
        began = time.monotonic()
        try:
            found += asyncio.run(part())
        except Exception:
            traceback.print_exc()
            spoilt.append(name)
        took = time.monotonic() - began
        print(f"{name}: {took:.0f} s; before it the disk did {disk[-1]:,.0f} commits/s", flush=True)
    print(f"\n{report.table(found)}\n\n{report.cpu_table(found)}\n\n{report.verdict(found)}")
    report.write(asked.out, found, facts | {"commits_per_second_before_each_part": disk})
    print(f"all figures: {asked.out}")
    if spoilt:
        print(f"could not be measured: {', '.join(spoilt)}")
    return int(bool(spoilt) or (asked.strict and any(each.holds is False for each in found)))


if __name__ == "__main__":
    sys.exit(main())
