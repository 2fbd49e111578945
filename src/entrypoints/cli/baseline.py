"""``casenotes baseline``."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from casenotes.core.errors import InvalidInput, InvalidSettings, RunNotFound
from casenotes.core.words import RunStatus
from casenotes.entrypoints.cli.command import Command, add_json, advised, opened_record
from casenotes.entrypoints.cli.progress import progress_bar
from casenotes.entrypoints.cli.terminal import as_json, counted, visible
from casenotes.entrypoints.settings import Settings

_FLOWS = ("auto", "chat", "graph", "aiops")


def arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="run|diff|isolation|capture", required=True, dest="action")
    run_ = actions.add_parser(
        "run",
        help="run each incident of a suite and write what came of it; exit 1 when one cannot be read or fails",
        epilog="example: casenotes baseline run baseline/suite --out new.json",
    )
    run_.add_argument("suite", metavar="SUITE", type=Path, help="a folder of incident packs")
    run_.add_argument("--out", metavar="FILE", type=Path, required=True, help="where to write the baseline")
    run_.add_argument("--flow", choices=_FLOWS, default="auto", help="how to answer (auto)")
    run_.add_argument(
        "--concurrency", type=_whole(1, 64), default=4, metavar="N", help="incidents at once (4)"
    )
    run_.add_argument(
        "--timeout",
        type=_seconds,
        default=120.0,
        metavar="S",
        help="seconds that one incident may take (120)",
    )
    run_.add_argument("--database", metavar="URL", help="keep the runs in this database (memory://)")
    run_.add_argument("--anew", action="store_true", help="do not go on from an interrupted run")
    add_json(run_)
    diff = actions.add_parser(
        "diff",
        help="compare two baselines; exit 1 on a regression that is not expected",
        epilog="example: casenotes baseline diff old.json new.json --expected expected.json --markdown",
    )
    diff.add_argument("old", metavar="OLD", type=Path)
    diff.add_argument("new", metavar="NEW", type=Path)
    diff.add_argument(
        "--expected", metavar="FILE", type=Path, help="drifts that are right, with their reasons"
    )
    form = diff.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, for a CI")
    form.add_argument("--markdown", action="store_true", help="print Markdown, for a CI's summary")
    isolation = actions.add_parser(
        "isolation",
        help="compare the figures of whole sessions with those of runs; exit 1 when a drift is not explained",
        epilog="example: casenotes baseline isolation --json",
    )
    add_json(isolation)
    capture = actions.add_parser(
        "capture",
        help="write a recorded run as an incident pack",
        epilog="example: casenotes baseline capture s-1 RUN --out suite/checkout-slow",
    )
    capture.add_argument("session", metavar="SESSION", help="the session's id")
    capture.add_argument("run_id", metavar="RUN", help="the run's id")
    capture.add_argument("--out", metavar="PACK", type=Path, required=True, help="the folder to make")
    add_json(capture)


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text[:12]) <= most:
            raise ArgumentTypeError(f"must be a whole number from {least} to {most}")
        return int(text)

    return parse


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.001 <= seconds <= 86400:
        raise ArgumentTypeError("must be a number of seconds, from 0.001 to 86400")
    return seconds


async def run(asked: Namespace) -> int:
    actions = {"run": _run, "diff": _diff, "isolation": _isolation, "capture": _capture}
    return await actions[asked.action](asked)


async def _run(asked: Namespace) -> int:
    from casenotes.entrypoints.baseline.running import Plan, run_suite  # loads the drivers
    from casenotes.entrypoints.baseline.suite import read_suite
    from casenotes.entrypoints.cli import baseline_pages as pages

    suite = read_suite(asked.suite)
    plan = Plan(
        flow=asked.flow,
        concurrency=asked.concurrency,
        timeout=timedelta(seconds=asked.timeout),
        anew=asked.anew,
        database_url=_database(asked.database),
    )
    with progress_bar(sys.stderr) as tell, advised():
        ran = await run_suite(suite, asked.out, plan, Settings.from_environ(), tell=tell)
    if ran.resumed:
        done = counted(ran.resumed, "incident")
        print(f"casenotes baseline: went on from an interrupted run: {done} done before", file=sys.stderr)
    report = ran.report
    print(as_json(report.as_json()) if asked.json else pages.run_page(report, visible(str(asked.out))))
    return 0 if report.is_whole else 1


def _database(url: str | None) -> str:
    if url is None:
        return "memory://"
    try:
        return Settings.from_environ({"CASENOTES_DATABASE_URL": url}).database_url
    except InvalidSettings as error:
        raise InvalidInput("--database", str(error).partition(": ")[2]) from None


async def _diff(asked: Namespace) -> int:
    from casenotes.core.baseline.diff import compare
    from casenotes.entrypoints.baseline.files import read_expectations, read_report
    from casenotes.entrypoints.cli import baseline_pages as pages

    expected = () if asked.expected is None else await asyncio.to_thread(read_expectations, asked.expected)
    comparison = compare(read_report(asked.old), read_report(asked.new), expected)
    if asked.json:
        print(as_json(comparison.as_json()))
    else:
        print(pages.diff_markdown(comparison) if asked.markdown else pages.diff_page(comparison))
    return 0 if comparison.is_clean else 1


async def _isolation(asked: Namespace) -> int:
    from casenotes.entrypoints.baseline.isolating import isolation_of
    from casenotes.entrypoints.cli import baseline_pages as pages

    async with opened_record() as record:
        report = await isolation_of(record.ledger)
    print(as_json(report.as_json()) if asked.json else pages.isolation_page(report))
    return 1 if report.unexplained else 0


async def _capture(asked: Namespace) -> int:
    from casenotes.adapters.evidence import capture
    from casenotes.entrypoints.cli import baseline_pages as pages

    async with opened_record() as record:
        trace = await record.reading.trace(asked.session, asked.run_id)
    if trace.run is None:
        raise RunNotFound(asked.session, asked.run_id)
    if trace.run.status is RunStatus.RUNNING:
        raise InvalidInput("RUN", "has not ended yet")
    captured = await capture(trace, trace.run, asked.out)
    shape = pages.captured_shape(captured)
    print(as_json(shape) if asked.json else pages.captured_page(captured, visible(str(asked.out))))
    return 0


COMMAND = Command(
    name="baseline",
    summary="see whether a change made diagnoses worse: run a suite of incidents, and compare",
    example="  casenotes baseline run baseline/suite --out new.json\n"
    "  casenotes baseline diff baseline/baseline.json new.json\n"
    "  casenotes baseline isolation\n"
    "  casenotes baseline capture s-1 RUN --out suite/checkout-slow",
    arguments=arguments,
    run=run,
)
