"""The statements that every request runs must find their rows by an index, however large the tables grow."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import ClauseElement, Executable
from sqlalchemy.sql.compiler import SQLCompiler

from casenotes.adapters.sql import cases, erase, history, journal, keys, runs, sessions
from casenotes.adapters.sql.dialect import SQLITE

STATEMENTS: dict[str, Executable] = {
    "session": sessions._GET,
    "touch": sessions._TOUCH,
    "sessions": sessions._page(SQLITE, False, False),
    "more sessions": sessions._page(SQLITE, False, True),
    "run": runs._GET,
    "latest run": runs._LATEST,
    "runs": runs._FIRST_PAGE,
    "more runs": runs._NEXT_PAGE,
    "expired leases": runs._EXPIRED,
    "end of a run": runs._END.values(status="SUCCESS"),
    "feedback": runs._FEEDBACK.values(feedback="useful"),
    "steps": journal._STEPS,
    "tool calls": journal._TOOLS,
    "counts": journal._COUNT,
    "case of a run": cases._OF_RUN,
    "withdrawal": cases._WITHDRAW,
    "historical session": history._LATEST,
    "historical steps": history._UNPLACED_STEPS,
    "historical tool calls": history._UNPLACED_TOOLS,
    "holder of a key": keys._HOLDER,
    "erased runs": erase._RUNS,
    "erased steps": erase._STEPS,
    "erased tool calls": erase._TOOLS,
    "erased keys": erase._KEYS,
}


@pytest.fixture
def connection(ledger_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(ledger_path)) as opened:
        yield opened


def plan_of(connection: sqlite3.Connection, statement: Executable) -> str:
    assert isinstance(statement, ClauseElement)
    compiled = statement.compile(dialect=sqlite.dialect())
    assert isinstance(compiled, SQLCompiler)
    values = [None] * len(compiled.positiontup or ())
    rows = connection.execute(f"EXPLAIN QUERY PLAN {compiled}", values).fetchall()
    return "\n".join(str(row[-1]) for row in rows)


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement_finds_its_rows_by_an_index(connection: sqlite3.Connection, name: str) -> None:
    plan = plan_of(connection, STATEMENTS[name])
    for line in plan.splitlines():
        assert not line.startswith("SCAN") or "USING" in line or line == "SCAN CONSTANT ROW", plan


@pytest.mark.parametrize("name", ["latest run", "runs", "more runs", "steps", "tool calls"])
def test_order_of_a_statement_is_that_of_its_index(connection: sqlite3.Connection, name: str) -> None:
    assert "TEMP B-TREE" not in plan_of(connection, STATEMENTS[name])
