"""``casenotes runs``."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from casenotes.core.service.reading import DEFAULT_LIMIT
from casenotes.core.views import RunSummary
from casenotes.entrypoints.cli.command import Command, add_json, opened_record
from casenotes.entrypoints.cli.terminal import WIDTH, as_json, counted, moment, one_line, visible
from casenotes.entrypoints.http import shapes


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="S", help="the session's id")
    parser.add_argument(
        "--limit", type=int, default=DEFAULT_LIMIT, help=f"at most this many, up to 500 ({DEFAULT_LIMIT})"
    )
    parser.add_argument("--before", metavar="RUN", help="go on after this run")
    add_json(parser)


async def run(asked: Namespace) -> int:
    async with opened_record() as record:
        page = await record.reading.runs(asked.session, limit=asked.limit, before=asked.before)
    if asked.json:
        print(as_json([shapes.run_summary(one) for one in page]))
    else:
        print(_page(asked.session, page, asked.limit))
    return 0


def _page(session_id: str, page: Sequence[RunSummary], limit: int) -> str:
    if not page:
        return "no runs"
    lines = [line for one in page for line in _lines(one)]
    if len(page) == limit:
        lines.append(
            f"more: casenotes runs {visible(shlex.quote(session_id))} --limit {limit} --before {page[-1].run_id}"
        )
    return "\n".join(lines)


def _lines(run: RunSummary) -> list[str]:
    counts = f"{counted(run.step_count, 'step')}, {counted(run.tool_call_count, 'tool call')}"
    lines = [
        f"{visible(run.run_id)}  {visible(run.status)}  {visible(run.agent_flow)}",
        f"  {moment(run.created_at)}, {counts}",
        f"  Q {one_line(run.query, WIDTH - 4)}",
    ]
    if run.answer_preview is not None:
        lines.append(f"  A {one_line(run.answer_preview, WIDTH - 4)}")
    return lines


COMMAND = Command(
    name="runs",
    summary="list the runs of a session, newest first",
    example="  casenotes runs s-1 --limit 20",
    arguments=arguments,
    run=run,
)
