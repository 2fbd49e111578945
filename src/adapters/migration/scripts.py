"""The revisions that ship with this version, and running one of them on a connection."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from casenotes.core.errors import InvalidInput, SchemaOutOfDate

if TYPE_CHECKING:  # Alembic is large: it is loaded where there is something to migrate
    from alembic.config import Config

EXPECTED_REVISION = "0006"
"""What a ledger compares its database with when it starts; a test holds it to the newest revision that ships."""

HISTORICAL_REVISION = "0001"
"""The schema as the old system left it."""


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's configuration. The revisions are found through the package, in a wheel and in a checkout alike."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "casenotes.migrations:")
    config.attributes["connection"] = connection
    return config


@cache
def revisions() -> tuple[str, ...]:
    """All revisions, oldest first. They are one line: a second head is an error."""
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(configuration())
    scripts.get_current_head()
    return tuple(script.revision for script in scripts.walk_revisions())[::-1]


def resolve(revision: str) -> str:
    """The revision of this name, or the newest for ``head``. Raises ``InvalidInput`` when there is none."""
    if revision in ("head", EXPECTED_REVISION):
        return EXPECTED_REVISION
    known = revisions()
    if revision not in known:
        raise InvalidInput("revision", f"there is no such revision; known are {', '.join(known)} and head")
    return revision


def current_revision(connection: Connection) -> str | None:
    """The database's revision, known or not; ``None`` when it has none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    heads = connection.scalars(text("SELECT version_num FROM alembic_version")).all()
    if len(heads) > 1:
        raise SchemaOutOfDate(
            f"the database is at several revisions at once ({', '.join(sorted(heads))}); "
            "restore it from a backup of before the last migration"
        )
    return heads[0] if heads else None


def pending(current: str | None, goal: str) -> tuple[str, ...]:
    """The revisions that lead from ``current`` to ``goal``; empty when it is there, or past it.

    Raises ``SchemaOutOfDate`` when ``current`` is not known.
    """
    if current == EXPECTED_REVISION:
        return ()
    known = revisions()
    if current is not None and current not in known:
        raise SchemaOutOfDate(
            f"the database is at revision {current}, and this version of casenotes knows none after {known[-1]}; "
            "run the newer version that migrated it"
        )
    done = 0 if current is None else known.index(current) + 1
    return known[done : known.index(goal) + 1]


def has_runs(revision: str) -> bool:
    """Whether runs are apart from sessions at this revision: at every one but the old system's."""
    return revision != HISTORICAL_REVISION


def run(connection: Connection, revision: str) -> None:
    """Apply one revision in the connection's transaction."""
    from alembic import command

    command.upgrade(configuration(connection), revision)


def stamp(connection: Connection, revision: str) -> None:
    """Note, in the connection's transaction, that the database is at this revision. Nothing else changes."""
    from alembic import command

    command.stamp(configuration(connection), revision)
