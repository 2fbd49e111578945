"""``casenotes serve``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from casenotes.entrypoints.cli.command import Command
from casenotes.entrypoints.settings import Settings


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=port, default=9900, help="the port to listen on (9900; 0: a free one)")
    parser.add_argument(
        "--insecure", action="store_true", help="let others reach it although no API key is set"
    )


def port(text: str) -> int:
    """A port number. Raises ``ValueError``, which the parser tells."""
    number = int(text)
    if not 0 <= number <= 65535:
        raise ValueError(text)
    return number


async def run(asked: Namespace) -> int:
    from casenotes.entrypoints.http import server  # loads the web framework

    settings = Settings.from_environ()
    await server.serve(settings, host=asked.host, port=asked.port, insecure=asked.insecure)
    return 0


COMMAND = Command(
    name="serve",
    summary="serve the HTTP API and the pages until SIGTERM or Ctrl-C",
    example="  casenotes serve --port 9900\n  CASENOTES_API_KEYS=change-me casenotes serve --host 0.0.0.0",
    arguments=arguments,
    run=run,
)
