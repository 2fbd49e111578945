"""``casenotes erase``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from casenotes.core.views import Erasure, Pruning
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
    return f"erased {visible(erasure.session_id)}: {counts(erasure)}"


def counts(removed: Erasure | Pruning) -> str:
    """What was removed, such as ``1 run, 2 steps, 0 tool calls, 1 case``."""
    return ", ".join(
        (
            counted(removed.runs, "run"),
            counted(removed.agent_steps, "step"),
            counted(removed.tool_invocations, "tool call"),
            counted(removed.cases, "case"),
        )
    )


COMMAND = Command(
    name="erase",
    summary="remove a session with its runs, cases and conversation, for good and without asking again",
    example="  casenotes erase s-1",
    arguments=arguments,
    run=run,
)
