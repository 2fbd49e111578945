"""``casenotes erase``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from casenotes.core.views import Erasure
from casenotes.entrypoints.cli.command import Command, add_json, opened_record
from casenotes.entrypoints.cli.terminal import as_json, counted, visible
from casenotes.entrypoints.http import shapes


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="the session's id")
    add_json(parser)


async def run(asked: Namespace) -> int:
    async with opened_record() as record:
        erasure = await record.conversations.erase(asked.session)
    print(as_json(shapes.erasure(erasure)) if asked.json else _page(erasure))
    return 0


def _page(erasure: Erasure) -> str:
    removed = ", ".join(
        (
            counted(erasure.runs, "run"),
            counted(erasure.agent_steps, "step"),
            counted(erasure.tool_invocations, "tool call"),
            counted(erasure.cases, "case"),
        )
    )
    return f"erased {visible(erasure.session_id)}: {removed}"


COMMAND = Command(
    name="erase",
    summary="remove a session with its runs, cases and conversation, for good and without asking again",
    example="  casenotes erase s-1",
    arguments=arguments,
    run=run,
)
