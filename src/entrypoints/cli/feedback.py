"""``casenotes feedback``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from casenotes.core.views import FeedbackReceipt
from casenotes.core.words import Rating
from casenotes.entrypoints.cli.command import Command, add_json, opened_record
from casenotes.entrypoints.cli.terminal import as_json
from casenotes.entrypoints.http import shapes


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="S", help="the session's id")
    parser.add_argument("rating", choices=[str(one) for one in Rating], help="what you say of the run")
    parser.add_argument("--run", metavar="RUN", dest="run_id", help="the run (the session's latest run)")
    parser.add_argument("--comment", help="why")
    add_json(parser)


async def run(asked: Namespace) -> int:
    async with opened_record() as record:
        receipt = await record.feedback.give(
            asked.session, asked.rating, run_id=asked.run_id, comment=asked.comment
        )
    print(as_json(shapes.receipt(receipt)) if asked.json else _page(receipt))
    return 0


def _page(receipt: FeedbackReceipt) -> str:
    if receipt.run_id is None:
        return f"{receipt.feedback}: noted on the session's historical row, it has no run"
    which = ", the session's latest run" if receipt.fallback_to_latest_run else ""
    lines = [f"{receipt.feedback}: noted on {receipt.run_id}{which}"]
    if receipt.case_id is not None:
        lines.append(f"case {receipt.case_id} holds its question and answer")
    return "\n".join(lines)


COMMAND = Command(
    name="feedback",
    summary="say whether a run was useful; a useful run becomes a case, the last word wins",
    example='  casenotes feedback s-1 useful\n  casenotes feedback s-1 --run RUN not_useful --comment "wrong deploy"',
    arguments=arguments,
    run=run,
)
