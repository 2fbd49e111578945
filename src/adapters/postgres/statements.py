"""Statements by which PostgreSQL does at once what others do in several: many rows, or rows of two tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import orjson
import sqlalchemy as sa
from attrs import fields, frozen

from casenotes.adapters.rows import Row, to_row
from casenotes.adapters.sql.dialect import POSTGRES
from casenotes.adapters.sql.sessions import using
from casenotes.adapters.sql.tables import agent_step, chat_session, diagnosis_run, tool_invocation
from casenotes.core.model import ChatSession, DiagnosisRun

_SESSION: Final = tuple(one.name for one in fields(ChatSession))
_RUN: Final = tuple(one.name for one in fields(DiagnosisRun) if one.name != "id")


def _start() -> sa.Insert:
    given = {name: sa.bindparam(f"session.{name}", type_=chat_session.c[name].type) for name in _SESSION}
    used = using(POSTGRES).values(given).returning(chat_session.c.session_id).cte("used")
    run = sa.select(*(sa.bindparam(name, type_=diagnosis_run.c[name].type) for name in _RUN))
    insert = sa.insert(diagnosis_run).from_select([*_RUN], run.select_from(used))
    return insert.returning(diagnosis_run.c.id)


START: Final = _start()
"""Stores a run and uses its session, for the values of ``start_values``; returns the run's ``id``."""


def start_values(session: ChatSession, run: DiagnosisRun) -> Row:
    """Raises ``ValueError`` as ``to_row`` does."""
    return to_row(run) | {f"session.{name}": value for name, value in to_row(session).items()}


@frozen
class ManyRows:
    """A statement that stores any number of entries of RUNNING runs that nobody else holds; returns the keys of those
    it stored.

    Its one argument is a list of rows as JSON: as many arrays as there are columns would cost the driver more.
    """

    table: sa.Table
    sql: str

    @classmethod
    def of(cls, table: sa.Table) -> ManyRows:
        columns = [column for column in table.c if column.name != "id"]
        names = ", ".join(column.name for column in columns)
        given = ", ".join(f"given.{column.name}" for column in columns)
        types = ", ".join(f"{column.name} {column.type.compile(POSTGRES.compiler)}" for column in columns)
        # The runs are locked, shared, so that they stay RUNNING until the commit; what others hold is passed over.
        # Each is looked up by its id: were they joined, all that ever ran could be gone through until the next vacuum.
        return cls(
            table,
            f"""
            WITH given AS MATERIALIZED (SELECT * FROM json_to_recordset($1::JSON) AS row ({types})),
            running AS (
                SELECT run.session_id, run.run_id
                FROM (SELECT DISTINCT session_id, run_id FROM given) AS asked
                CROSS JOIN LATERAL (
                    SELECT session_id, run_id FROM diagnosis_run
                    WHERE session_id = asked.session_id AND run_id = asked.run_id AND status = 'RUNNING'
                    FOR SHARE SKIP LOCKED
                ) AS run
            )
            INSERT INTO {table.name} ({names})
            SELECT {given} FROM given JOIN running USING (session_id, run_id)
            ON CONFLICT DO NOTHING RETURNING session_id, run_id, sequence
            """,
        )

    @staticmethod
    def argument(rows: Sequence[Row]) -> str:
        """The rows as the statement takes them."""
        try:
            return orjson.dumps(rows).decode()
        except TypeError:  # a number of more than 64 bits
            return _as_json(rows)


_as_json: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=datetime.isoformat).encode

STEPS: Final = ManyRows.of(agent_step)
TOOLS: Final = ManyRows.of(tool_invocation)
