"""The command line: ``casenotes``, and ``python -m casenotes``."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from casenotes.core.errors import CasenotesError, InvalidInput, InvalidSettings
from casenotes.core.text import settle
from casenotes.entrypoints.cli import (
    ask,
    baseline,
    demo,
    erase,
    feedback,
    migrate,
    prune,
    runs,
    serve,
    trace,
    verify,
)
from casenotes.entrypoints.cli.command import Command
from casenotes.entrypoints.cli.terminal import visible

COMMANDS = (
    serve.COMMAND,
    migrate.COMMAND,
    ask.COMMAND,
    trace.COMMAND,
    runs.COMMAND,
    feedback.COMMAND,
    demo.COMMAND,
    verify.COMMAND,
    erase.COMMAND,
    prune.COMMAND,
    baseline.COMMAND,
)

_FAILED = 1
_REFUSED = 2
_INTERRUPTED = 130
_NOBODY_READS = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out a command and give its exit status.

    0: done. 1: it failed. 2: it was asked wrongly, or a setting is wrong. Of both, one line on standard error says
    why. 130 and 141, without a word: interrupted, and nobody reads the output any more.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _carry_out(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()
        return _NOBODY_READS
    except KeyboardInterrupt:
        return _INTERRUPTED
    return status


def _carry_out(argv: Sequence[str] | None) -> int:
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as done:  # after --help, or what was asked wrongly
        return done.code if isinstance(done.code, int) else _REFUSED
    try:
        for name, value in vars(arguments).items():
            if isinstance(value, str) and settle(value) != value:
                raise InvalidInput(name, "must be UTF-8")
        command: Command = arguments.command
        return asyncio.run(command.run(arguments))
    except (InvalidInput, InvalidSettings) as error:
        return _say(arguments.command.name, str(error), _REFUSED)
    except CasenotesError as error:
        return _say(arguments.command.name, str(error), _FAILED)
    except BrokenPipeError:
        raise
    except Exception as fault:
        # Its words may hold anything, a secret too.
        return _say(
            arguments.command.name,
            f"a fault of casenotes itself ({type(fault).__name__}); report it",
            _FAILED,
        )


def _say(command: str, message: str, status: int) -> int:
    line = " ".join(visible(message).split())
    print(f"casenotes {command}: {line}", file=sys.stderr)
    return status


def _parser() -> ArgumentParser:
    parser = _Parser(
        prog="casenotes",
        description="The record of what a diagnosis agent did, run by run.",
        epilog="Settings are read from CASENOTES_* variables. Each command has --help with an example.",
    )
    commands = parser.add_subparsers(metavar="command", required=True, parser_class=_Parser)
    for command in COMMANDS:
        of_command = commands.add_parser(
            command.name,
            help=command.summary,
            description=f"{command.summary[0].upper()}{command.summary[1:]}.",
            epilog=f"example:\n{command.example}",
            formatter_class=RawDescriptionHelpFormatter,
        )
        command.arguments(of_command)
        of_command.set_defaults(command=command)
    return parser


class _Parser(ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(_REFUSED, f"{self.prog}: {' '.join(visible(message).split())} (see {self.prog} --help)\n")


def _silence_stdout() -> None:
    """Let what is still buffered go nowhere: else the interpreter would complain on its way out."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
