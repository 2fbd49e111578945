"""``casenotes prune``."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import timedelta

from casenotes.core.text import JsonObject
from casenotes.core.views import Pruning
from casenotes.entrypoints.cli.command import Command, add_json, opened_record
from casenotes.entrypoints.cli.erase import counts
from casenotes.entrypoints.cli.terminal import as_json, counted

_AGE = re.compile(r"([1-9][0-9]{0,5})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--older-than",
        metavar="AGE",
        type=age,
        required=True,
        help="remove sessions that were last active longer ago than this: 90d, 12w, 36h",
    )
    add_json(parser)


def age(text: str) -> timedelta:
    """A time span such as ``90d``. Raises ``ArgumentTypeError``."""
    match = _AGE.fullmatch(text)
    if match is None:
        raise ArgumentTypeError("must be a whole number with s, m, h, d or w, such as 90d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


async def run(asked: Namespace) -> int:
    async with opened_record() as record:
        removed = await record.conversations.pruned(asked.older_than)
    print(as_json(_json(removed)) if asked.json else _page(removed))
    return 0


def _json(removed: Pruning) -> JsonObject:
    return {
        "sessions": removed.sessions,
        "runs": removed.runs,
        "agentSteps": removed.agent_steps,
        "toolInvocations": removed.tool_invocations,
        "cases": removed.cases,
    }


def _page(removed: Pruning) -> str:
    return f"removed {counted(removed.sessions, 'session')}: {counts(removed)}"


COMMAND = Command(
    name="prune",
    summary="remove whole sessions that nobody has used for a time, for good and without asking again",
    example="  casenotes prune --older-than 90d",
    arguments=arguments,
    run=run,
)
