"""Old tables on Postgres whose columns are a little different: what fits, and making fit what does not quite.

Part of revision 0002. A table that 0001 made fits as it is, and nothing is done to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import sqlalchemy as sa
from attrs import frozen
from sqlalchemy import Connection

TEXT: Final = "text"
INTEGER: Final = "integer"
BIGINT: Final = "bigint"
JSON: Final = "jsonb"
MOMENT: Final = "timestamp with time zone"

_LIKE: Final = {
    TEXT: {"text", "character varying", "character"},
    INTEGER: {"integer", "smallint", "bigint"},
    BIGINT: {"bigint", "integer", "smallint"},
    JSON: {"jsonb", "json", "text", "character varying"},
    MOMENT: {"timestamp with time zone", "timestamp without time zone"},
}
"""The types, without their lengths, that do for a wanted one, as they are or once they are converted."""

_STEP: Final = {
    "id": BIGINT,
    "session_id": TEXT,
    "step_number": INTEGER,
    "status": TEXT,
    "error_message": TEXT,
    "duration_ms": BIGINT,
    "created_at": MOMENT,
}

HISTORICAL: Final[Mapping[str, Mapping[str, str]]] = {
    "diagnosis_session": {
        "id": BIGINT,
        **dict.fromkeys(("session_id", "query", "answer", "status", "agent_flow"), TEXT),
        "self_evaluation": JSON,
        **dict.fromkeys(("feedback", "feedback_comment"), TEXT),
        **dict.fromkeys(("step_count", "tool_call_count"), INTEGER),
        **dict.fromkeys(("created_at", "updated_at"), MOMENT),
    },
    "agent_step": {
        **_STEP,
        **dict.fromkeys(("agent_name", "step_type", "model", "input", "output"), TEXT),
        **dict.fromkeys(("input_tokens", "output_tokens"), BIGINT),
    },
    "tool_invocation": {**_STEP, "tool_name": TEXT, "arguments": JSON, "result": TEXT},
    "case_library": {
        "id": BIGINT,
        **dict.fromkeys(("diagnosis_id", "query", "answer"), TEXT),
        **dict.fromkeys(("created_at", "updated_at"), MOMENT),
    },
}
"""The old system's tables and columns, with their types on Postgres. They may have more columns."""

ADDED: Final = {
    "agent_step": ("run_id", "sequence"),
    "tool_invocation": (
        *("run_id", "sequence", "step_sequence"),
        *("result_truncated", "result_size", "result_is_json"),
    ),
    "case_library": ("status", "source", "session_id"),
}
"""The columns that later revisions add."""

_WRITTEN: Final = ("agent_step", "tool_invocation", "case_library")
"""The tables that new runs are written to, and whose columns are therefore all made to fit."""

_OF_SESSION: Final = ("feedback", "feedback_comment", "self_evaluation")
"""The columns of ``diagnosis_session`` that are made to fit: feedback is written there, and JSON has to be JSON."""

_ALWAYS_FILLED: Final = ("id", "session_id", "diagnosis_id", "created_at", "updated_at")
"""The columns of the written tables that may be NOT NULL."""

_AS_JSON = """
CREATE FUNCTION pg_temp.casenotes_json(value text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN value::jsonb;
EXCEPTION WHEN OTHERS THEN
    RETURN to_jsonb(value);
END $$
"""
"""What is no JSON, or JSON that jsonb does not take, becomes a JSON string."""

_TABLES = "SELECT to_regclass(quote_ident(name)) FROM unnest(CAST(:tables AS text[])) AS name"

_COLUMNS = f"""
SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
       a.attnotnull AS required, a.atthasdef OR a.attidentity <> '' AS filled
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.oid IN ({_TABLES})
ORDER BY c.relname, a.attnum
"""

_OBSTACLES = f"""
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', c.conrelid::regclass, c.conname)
FROM pg_constraint c
WHERE c.conrelid IN ({_TABLES}) AND
      (c.contype IN ('c', 'f') OR c.contype = 'u' AND c.conrelid <> to_regclass('case_library'))
UNION ALL
SELECT format('DROP INDEX %s', i.indexrelid::regclass)
FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
WHERE i.indrelid IN ({_TABLES}) AND i.indisunique AND NOT i.indisprimary AND t.relname <> 'case_library'
  AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
"""
"""Statements that drop what rows of several runs in one session, or of a new session, would break.

The tool that made the tables may have laid down that a step's session is an old one, or its number unique in it.
"""

_SMALL_SEQUENCES = f"""
SELECT s.seqrelid::regclass::text FROM pg_sequence s JOIN pg_depend d ON d.objid = s.seqrelid AND d.deptype = 'a'
WHERE d.refobjid IN ({_TABLES}) AND s.seqtypid <> 'bigint'::regtype
"""
"""The sequences of ids that were serial; those of identity columns follow their column's type."""


@frozen
class Column:
    """A column that is there, with its type as Postgres writes it."""

    table: str
    name: str
    type: str
    required: bool
    filled: bool
    """It has a default, or makes its values itself."""

    @property
    def kind(self) -> str:
        """The type without its length."""
        return re.sub(r"\(.*?\)", "", self.type)


def misfits(connection: Connection) -> Iterator[str]:
    """What no conversion makes fit, one phrase each: table, column, what it is and what is wanted."""
    for column in _columns(connection):
        wanted = HISTORICAL[column.table].get(column.name)
        found = f"{column.table}.{column.name} is {column.type}"
        if wanted is not None and column.kind not in _LIKE[wanted]:
            yield f"{found}, wanted is {wanted}"
        elif column.table in _WRITTEN and not column.filled:
            if column.name == "id":
                yield f"{found} without a default, wanted is one that the database assigns"
            elif wanted is None and column.required:
                yield f"{found} not null without a default, wanted is a default, as casenotes does not fill it"


def fit(connection: Connection) -> None:
    """Convert what fits a little differently. On Postgres only: SQLite's columns take any value.

    A table is rewritten, once, where JSON is kept as text or ``json``, or a number is too small; the other changes
    are quick. Times without a zone are taken as UTC, which must be the connection's time zone.
    """
    if connection.dialect.name != "postgresql":
        return
    for obstacle in connection.scalars(sa.text(_OBSTACLES), {"tables": list(_WRITTEN)}).all():
        connection.exec_driver_sql(obstacle)
    changes: dict[str, list[str]] = {}
    for column in _columns(connection):
        changes.setdefault(column.table, []).extend(_changes(column))
    if any("casenotes_json" in change for of_table in changes.values() for change in of_table):
        connection.exec_driver_sql(_AS_JSON)
    for table, of_table in changes.items():
        if of_table:
            connection.exec_driver_sql(f"ALTER TABLE {table} {', '.join(of_table)}")
    for sequence in connection.scalars(sa.text(_SMALL_SEQUENCES), {"tables": list(_WRITTEN)}).all():
        connection.exec_driver_sql(f"ALTER SEQUENCE {sequence} AS bigint")


def _changes(column: Column) -> Iterator[str]:
    wanted = HISTORICAL[column.table].get(column.name)
    if wanted is None or (column.table not in _WRITTEN and column.name not in _OF_SESSION):
        return
    if column.required and column.name not in _ALWAYS_FILLED:
        yield f"ALTER COLUMN {column.name} DROP NOT NULL"
    if column.type == wanted or (wanted, column.type) == (INTEGER, BIGINT):
        return
    if wanted == JSON:
        yield f"ALTER COLUMN {column.name} DROP DEFAULT"
        yield f"ALTER COLUMN {column.name} TYPE jsonb USING pg_temp.casenotes_json({column.name}::text)"
    else:
        yield f"ALTER COLUMN {column.name} TYPE {wanted}"


def _columns(connection: Connection) -> list[Column]:
    found = connection.execute(sa.text(_COLUMNS), {"tables": list(HISTORICAL)}).mappings()
    return [Column(**row) for row in found]
