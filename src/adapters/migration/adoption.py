"""Taking over the old system's tables, which another tool made and alembic knows nothing of."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy import Connection

from casenotes.adapters.migration import fitting
from casenotes.adapters.migration.fitting import ADDED, HISTORICAL
from casenotes.core.errors import SchemaOutOfDate

_LATER_TABLES = ("chat_session", "diagnosis_run", "idempotency_key")


def adopt(connection: Connection) -> bool:
    """Make sure that a database without a revision is empty or holds the old system's tables; say which (``True``).

    Other tables are left alone, those of the tool that made these included. Raises ``SchemaOutOfDate``, naming all
    that is missing or does not fit, when it holds only some of them, or tables of a later revision.
    """
    inspector = sa.inspect(connection)
    present = set(inspector.get_table_names())
    for table in _LATER_TABLES:
        if table in present:
            raise SchemaOutOfDate(
                f"the database has a table {table} but no revision; restore the table alembic_version, "
                "or use an empty database"
            )
    if not present & HISTORICAL.keys():
        return False
    if problems := [*_wrong_names(inspector, present), *_misfits(connection)]:
        raise SchemaOutOfDate(
            f"the database holds tables of the old system that do not fit: {'; '.join(problems)}; "
            "change that and migrate again, or use an empty database"
        )
    _index_sessions(connection, inspector)
    return True


def _wrong_names(inspector: sa.Inspector, present: set[str]) -> Iterator[str]:
    for table, columns in HISTORICAL.items():
        if table not in present:
            yield f"there is no table {table}"
            continue
        there = {column["name"] for column in inspector.get_columns(table)}
        yield from (f"{table} has no column {column}" for column in columns if column not in there)
        for column in ADDED.get(table, ()):
            if column in there:
                yield f"{table} has a column {column}, a name that casenotes needs for its own"


def _misfits(connection: Connection) -> Iterator[str]:
    if connection.dialect.name == "postgresql":  # on SQLite any column takes any value
        yield from fitting.misfits(connection)


def _index_sessions(connection: Connection, inspector: sa.Inspector) -> None:
    """Index the sessions by id, unless that is there: without it every look-up would read the whole table."""
    led = [list(index["column_names"]) for index in inspector.get_indexes("diagnosis_session")]
    led += [list(unique["column_names"]) for unique in inspector.get_unique_constraints("diagnosis_session")]
    if not any(columns[:1] == ["session_id"] for columns in led):
        connection.execute(
            sa.text("CREATE INDEX ix_diagnosis_session_session ON diagnosis_session (session_id)")
        )
