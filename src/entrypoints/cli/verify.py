"""``casenotes verify``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from casenotes.core.breaches import Breach
from casenotes.core.errors import SessionNotFound
from casenotes.core.service.service import Service
from casenotes.core.service.verifying import Verification
from casenotes.core.text import JsonObject
from casenotes.core.views import Tombstone
from casenotes.entrypoints.cli.command import Command, add_json, opened_record
from casenotes.entrypoints.cli.terminal import as_json, counted, moment, visible
from casenotes.entrypoints.http import shapes


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="?", help="the session's id (all sessions)")
    add_json(parser)


async def run(asked: Namespace) -> int:
    from casenotes.entrypoints import bootstrap  # loads the drivers

    async with opened_record() as record:
        if asked.session is not None and (erased := await _erased(record, asked.session)):
            print(
                as_json(_erased_json(asked.session, erased)) if asked.json else _told(asked.session, erased)
            )
            return 0
        verifying = bootstrap.verifying(record.ledger)
        if asked.session is None:
            found = await verifying.all(told=_ignore if asked.json else _tell)
        else:
            found = await verifying.session(asked.session)
            if not asked.json:
                for breach in found.breaches:
                    _tell(breach)
    print(as_json(_json(found)) if asked.json else _summary(found))
    return 0 if found.is_clean else 1


def _ignore(_: Breach) -> None: ...


def _tell(breach: Breach) -> None:
    where = " ".join(visible(name) for name in (breach.session_id, breach.run_id) if name is not None)
    print(": ".join(part for part in (breach.kind, where, visible(breach.detail)) if part))


def _json(found: Verification) -> JsonObject:
    return {
        "sessions": found.sessions,
        "runs": found.runs,
        "running": found.running,
        "withoutDigest": found.without_digest,
        "breaches": [breach.as_json() for breach in found.breaches],
    }


async def _erased(record: Service, session_id: str) -> Sequence[Tombstone]:
    """The tombstones of a session that is gone; none of one that is there, or was never."""
    async with record.ledger.view() as view:
        tombstones = await view.sessions.tombstones(session_id)
    if tombstones:
        try:
            await record.reading.session(session_id)
        except SessionNotFound:
            return tombstones
    return ()


def _summary(found: Verification) -> str:
    what = f"{counted(found.sessions, 'session')}, {counted(found.runs, 'run')}"
    notes = [
        f"{number} {said}"
        for number, said in (
            (found.running, "running"),
            (found.without_digest, "from before there were digests"),
        )
        if number
    ]
    seen = f" ({', '.join(notes)})" if notes else ""
    verdict = "every promise holds" if found.is_clean else f"{counted(len(found.breaches), 'promise')} broken"
    return f"verified {what}{seen}: {verdict}"


def _told(session_id: str, erased: Sequence[Tombstone]) -> str:
    return "\n".join(
        f"{visible(session_id)} was erased {moment(tombstone.erased_at)}, with {counted(tombstone.runs, 'run')},"
        f" {counted(tombstone.agent_steps, 'step')}, {counted(tombstone.tool_invocations, 'tool call')}"
        f" and {counted(tombstone.cases, 'case')}"
        for tombstone in erased
    )


def _erased_json(session_id: str, erased: Sequence[Tombstone]) -> JsonObject:
    return {
        "sessionId": session_id,
        "erased": [
            {
                "at": shapes.moment(tombstone.erased_at),
                "runs": tombstone.runs,
                "agentSteps": tombstone.agent_steps,
                "toolInvocations": tombstone.tool_invocations,
                "cases": tombstone.cases,
            }
            for tombstone in erased
        ],
    }


COMMAND = Command(
    name="verify",
    summary="check that the record is whole and was not tampered with; exit 1 and a line for each broken promise",
    example="  casenotes verify\n  casenotes verify s-1 --json",
    arguments=arguments,
    run=run,
)
