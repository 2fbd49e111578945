"""Taking over the old system's tables, which another tool made and alembic knows nothing of."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection

from casenotes.core.errors import SchemaOutOfDate

_STEP_COLUMNS = ("id", "session_id", "step_number", "status", "error_message", "duration_ms", "created_at")

HISTORICAL_COLUMNS = {
    "diagnosis_session": (
        *("id", "session_id", "query", "answer", "status", "agent_flow", "self_evaluation"),
        *("feedback", "feedback_comment", "step_count", "tool_call_count", "created_at", "updated_at"),
    ),
    "agent_step": (
        *_STEP_COLUMNS,
        *("agent_name", "step_type", "model", "input", "output", "input_tokens", "output_tokens"),
    ),
    "tool_invocation": (*_STEP_COLUMNS, "tool_name", "arguments", "result"),
    "case_library": ("id", "diagnosis_id", "query", "answer", "created_at", "updated_at"),
}

_LATER_TABLES = ("chat_session", "diagnosis_run", "idempotency_key")


def adopt(connection: Connection) -> bool:
    """Make sure that a database without a revision is empty or holds the old system's tables; say which (``True``).

    Raises ``SchemaOutOfDate``, naming the first table or column that is missing, when it holds only some of them, or
    tables of a later revision.
    """
    inspector = sa.inspect(connection)
    present = set(inspector.get_table_names())
    for table in _LATER_TABLES:
        if table in present:
            raise SchemaOutOfDate(
                f"the database has a table {table} but no revision; restore the table alembic_version, "
                "or use an empty database"
            )
    if not present & HISTORICAL_COLUMNS.keys():
        return False
    for table, columns in HISTORICAL_COLUMNS.items():
        if table not in present:
            raise SchemaOutOfDate(_incomplete(f"it has no table {table}"))
        there = {column["name"] for column in inspector.get_columns(table)}
        for column in columns:
            if column not in there:
                raise SchemaOutOfDate(_incomplete(f"its table {table} has no column {column}"))
    _index_sessions(connection, inspector)
    return True


def _incomplete(what: str) -> str:
    return (
        f"the database holds tables of the old system, but {what}; add it and migrate again, "
        "or use an empty database"
    )


def _index_sessions(connection: Connection, inspector: sa.Inspector) -> None:
    """Index the sessions by id, unless that is there: without it every look-up would read the whole table."""
    led = [list(index["column_names"]) for index in inspector.get_indexes("diagnosis_session")]
    led += [list(unique["column_names"]) for unique in inspector.get_unique_constraints("diagnosis_session")]
    if not any(columns[:1] == ["session_id"] for columns in led):
        connection.execute(
            sa.text("CREATE INDEX ix_diagnosis_session_session ON diagnosis_session (session_id)")
        )
