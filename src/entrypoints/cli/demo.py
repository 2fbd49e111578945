"""``casenotes demo``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from casenotes.entrypoints.cli.command import Command, add_json
from casenotes.entrypoints.cli.terminal import as_json


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--url", help="the service to drive (one is started for the occasion, in memory)")
    add_json(parser)


async def run(asked: Namespace) -> int:
    from casenotes.entrypoints.demo import demonstrate  # loads the web framework

    if asked.json:
        print(as_json([*await demonstrate(asked.url, say=_nothing)]))
    else:
        await demonstrate(asked.url)
    return 0


def _nothing(_said: str) -> None:
    pass


COMMAND = Command(
    name="demo",
    summary="drive a service through chats, traces, feedback and the AIOps stream, and check its promises",
    example="  casenotes demo\n  casenotes demo --url http://127.0.0.1:9900",
    arguments=arguments,
    run=run,
)
