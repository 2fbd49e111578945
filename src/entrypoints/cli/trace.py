"""``casenotes trace``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from casenotes.entrypoints.cli.command import Command, add_json, opened_record
from casenotes.entrypoints.cli.terminal import as_json
from casenotes.entrypoints.cli.trace_page import trace_page
from casenotes.entrypoints.http import shapes


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="S", help="the session's id")
    parser.add_argument("run_id", metavar="RUN", nargs="?", help="the run's id (the session's latest run)")
    add_json(parser)


async def run(asked: Namespace) -> int:
    async with opened_record() as record:
        found = await record.reading.trace(asked.session, asked.run_id)
    print(as_json(shapes.trace(found)) if asked.json else trace_page(found))
    return 0


COMMAND = Command(
    name="trace",
    summary="show what a run did: question, answer, steps, tool calls, feedback, evaluation",
    example="  casenotes trace s-1\n  casenotes trace s-1 run-01a22f19-15ae-7315-9614-e8a0844ce576 --json",
    arguments=arguments,
    run=run,
)
