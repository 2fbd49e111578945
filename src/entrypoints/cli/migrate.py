"""``casenotes migrate``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from casenotes.core.text import Json, JsonObject
from casenotes.entrypoints.cli.command import Command, add_json
from casenotes.entrypoints.cli.terminal import as_json, counted, wrapped
from casenotes.entrypoints.settings import Settings

if TYPE_CHECKING:  # the module itself loads the drivers
    from casenotes.adapters.migration import Leftovers, MigrationReport, MigrationStatus, Placed, Rows

_NONE = "a memory:// ledger has no tables to migrate"


def arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="status|upgrade", required=True, dest="action")
    status = actions.add_parser(
        "status",
        help="tell where the database stands; exit 1 unless it is current",
        epilog="example: casenotes migrate status --json",
    )
    add_json(status)
    upgrade = actions.add_parser(
        "upgrade",
        help="bring the database to a revision, the newest by default",
        epilog="example: casenotes migrate upgrade --to 0003",
    )
    upgrade.add_argument("--to", metavar="REVISION", default="head", help="the revision (head)")
    add_json(upgrade)


async def run(asked: Namespace) -> int:
    if asked.action == "status":
        return await _status(asked)
    return await _upgrade(asked)


async def _status(asked: Namespace) -> int:
    from casenotes.entrypoints.bootstrap import schema_status

    status = await schema_status(Settings.from_environ().database_url)
    if status is None:
        print(as_json(None) if asked.json else _NONE)
        return 0
    print(as_json(_status_shape(status)) if asked.json else _status_page(status))
    return 0 if status.is_current else 1


async def _upgrade(asked: Namespace) -> int:
    from casenotes.entrypoints.bootstrap import upgrade

    report = await upgrade(Settings.from_environ().database_url, asked.to)
    if report is None:
        print(as_json(None) if asked.json else _NONE)
    else:
        print(as_json(_report_shape(report)) if asked.json else _report_page(report))
    return 0


def _status_page(status: MigrationStatus) -> str:
    if status.is_current:
        standing = "current"
    elif status.is_unknown:
        standing = "made by a newer version of casenotes: upgrade casenotes"
    else:
        standing = f"{counted(len(status.pending), 'revision')} behind: run casenotes migrate upgrade"
    lines = [f"revision {status.current or 'none'}, {status.head} is needed: {standing}"]
    if status.waiting:
        lines.append(f"waiting to be placed by casenotes migrate upgrade: {_placed(status.waiting)}")
    return "\n".join([*lines, *_leftover_lines(status.leftovers)])


def _report_page(report: MigrationReport) -> str:
    if report.applied:
        lines = [f"migrated from {report.from_revision or 'nothing'} to {report.to_revision}"]
    else:
        lines = [f"at {report.to_revision}{'' if report.placed else ', nothing to migrate'}"]
    if report.adopted:
        lines.append("the old system's tables were taken over")
    if report.placed:
        lines.append(f"placed in runs: {_placed(report.placed)}")
    return "\n".join([*lines, *_leftover_lines(report.leftovers)])


def _placed(placed: Placed) -> str:
    return (
        f"{counted(placed.sessions, 'session')}, {counted(placed.steps, 'step')},"
        f" {counted(placed.tools, 'tool call')}"
    )


def _leftover_lines(left: Leftovers) -> list[str]:
    kinds = (
        ("cannot be placed, the run's id is taken: {}", "session", left.sessions),
        ("cannot be placed, the session has no row or cannot be placed: {}", "step", left.steps),
        ("cannot be placed, the session has no row or cannot be placed: {}", "tool call", left.tools),
        ("not taken, a later row of the same session was: {}", "duplicate", left.duplicates),
    )
    return [
        wrapped(f"{text.format(counted(rows.count, noun))}{_of(rows)}", rest="  ")
        for text, noun, rows in kinds
        if rows.count
    ]


def _of(rows: Rows) -> str:
    return f" (of {', '.join(rows.session_ids)}, ...)" if rows.session_ids else ""


def _status_shape(status: MigrationStatus) -> JsonObject:
    return {
        "current": status.current,
        "head": status.head,
        "pending": list(status.pending),
        "isCurrent": status.is_current,
        "waiting": _placed_shape(status.waiting),
        "leftovers": _leftovers_shape(status.leftovers),
    }


def _report_shape(report: MigrationReport) -> JsonObject:
    return {
        "from": report.from_revision,
        "to": report.to_revision,
        "applied": list(report.applied),
        "adopted": report.adopted,
        "placed": _placed_shape(report.placed),
        "leftovers": _leftovers_shape(report.leftovers),
    }


def _placed_shape(placed: Placed) -> JsonObject:
    return {"sessions": placed.sessions, "agentSteps": placed.steps, "toolInvocations": placed.tools}


def _leftovers_shape(left: Leftovers) -> Json:
    kinds = {
        "sessions": left.sessions,
        "agentSteps": left.steps,
        "toolInvocations": left.tools,
        "duplicates": left.duplicates,
    }
    return {name: {"count": rows.count, "sessionIds": list(rows.session_ids)} for name, rows in kinds.items()}


COMMAND = Command(
    name="migrate",
    summary="tell where the database stands, or bring it to the schema of this version",
    example="  casenotes migrate status\n  casenotes migrate upgrade",
    arguments=arguments,
    run=run,
)
