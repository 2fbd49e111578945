"""``casenotes ask``."""

from __future__ import annotations

import asyncio
import shlex
import sys
from argparse import ArgumentParser, Namespace
from contextlib import aclosing
from datetime import timedelta

from casenotes.core import rules
from casenotes.core.model import DiagnosisRun
from casenotes.core.service.service import Service
from casenotes.core.service.stream import Content, Note, Order, Outcome
from casenotes.core.words import RunStatus
from casenotes.entrypoints.cli.command import Command, add_json, advised
from casenotes.entrypoints.cli.terminal import as_json, visible
from casenotes.entrypoints.http import shapes
from casenotes.entrypoints.settings import Settings


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("question", help="the question, in quotes")
    parser.add_argument("--session", metavar="S", help="go on in this session, or begin one with this id")
    parser.add_argument(
        "--flow", choices=("auto", "chat", "graph"), default="auto", help="how to answer (auto)"
    )
    add_json(parser)


async def run(asked: Namespace) -> int:
    from casenotes.entrypoints.bootstrap import open_service  # loads the drivers
    from casenotes.entrypoints.observing import LoggingObserver

    question = rules.check_question(asked.question)
    flow = rules.route(asked.flow, question)
    async with open_service(Settings.from_environ(), LoggingObserver()) as service:
        session_id = asked.session if asked.session else f"chat-{service.new_id()}"
        try:
            with advised():
                ended = await _answered(service, Order(session_id, question, flow), tell=not asked.json)
        except asyncio.CancelledError:
            # Whoever pressed Ctrl-C waits: the run ends now, recorded as interrupted.
            await service.executions.close(timedelta(0))
            raise
    print(as_json(shapes.answered(ended)) if asked.json else _end(ended))
    return 0 if ended.status is RunStatus.SUCCESS else _failed(ended)


async def _answered(service: Service, order: Order, *, tell: bool) -> DiagnosisRun:
    execution = await service.executions.submit(order)
    shows_progress = tell and sys.stderr.isatty()
    async with aclosing(execution.follow()) as events:
        async for event in events:
            match event:
                case Content(text) if tell:
                    print(visible(text), end="", flush=True)
                case Note(text) if shows_progress:
                    print(f"... {visible(text)}", file=sys.stderr)
                case Outcome(ended):
                    return ended
    raise AssertionError("an execution ends with its outcome")


def _end(ended: DiagnosisRun) -> str:
    lines = []
    if ended.answer is not None:  # it was printed as it came
        lines = [""] if ended.answer.endswith("\n") else ["", ""]
    if ended.degraded:
        lines.append("degraded  the answer was made without something it should have had")
    if ended.context_degraded:
        lines.append("degraded  the conversation store could not be reached in time")
    lines += [
        f"session   {visible(ended.session_id)}",
        f"run       {ended.run_id}",
        f"trace     casenotes trace {visible(shlex.quote(ended.session_id))} {ended.run_id}",
    ]
    return "\n".join(lines)


def _failed(ended: DiagnosisRun) -> int:
    print(
        f"casenotes ask: the run failed: {visible(ended.error_message or 'no reason is known')}",
        file=sys.stderr,
    )
    return 1


COMMAND = Command(
    name="ask",
    summary="ask a question, have it answered in this process, and keep the run on record",
    example='  casenotes ask "Why is checkout slow?"\n'
    '  casenotes ask --session s-1 --flow chat "Which deploy was it?"',
    arguments=arguments,
    run=run,
)
