"""SQLite finds the rows of every statement by an index, however large the tables grow."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from adapters.every_statement import (
    IN_ORDER,
    SWEEPS,
    WHOLE,
    Sent,
    methods_of_work,
    methods_outside,
    use_outside,
    use_work,
)

from casenotes.adapters.sql.tables import metadata
from casenotes.adapters.sqlite import open_ledger

SCANNED = re.compile(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?")
OF_RUNNING = "ix_diagnosis_run_lease"
"""An index of the RUNNING runs alone."""


@pytest.fixture
def connection(ledger_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(ledger_path)) as opened:
        yield opened


def sent_to(file: Path) -> Sequence[Sent]:
    """All statements of a ledger in this file."""

    async def use() -> Sequence[Sent]:
        ledger = open_ledger(f"sqlite:///{file}")
        try:
            work, outside = await use_work(ledger), await use_outside(ledger)
        finally:
            await ledger.close()
        assert work.called == methods_of_work()
        assert outside.called == methods_outside()
        return [*work.reading_and_writing(), *outside.reading_and_writing()]

    return asyncio.run(use())


def plan_of(connection: sqlite3.Connection, sent: Sent) -> Sequence[str]:
    return [row[-1] for row in connection.execute(f"EXPLAIN QUERY PLAN {sent.sql}", sent.arguments)]


def scanned(connection: sqlite3.Connection, sent: Sent) -> Sequence[tuple[str, str | None]]:
    """The tables that a statement goes through, each with the index in whose order it does."""
    found = [match.groups() for line in plan_of(connection, sent) if (match := SCANNED.match(line))]
    return [(table, index) for table, index in found if table in metadata.tables]


def test_no_statement_goes_through_all_rows_of_a_table(
    connection: sqlite3.Connection, ledger_path: Path
) -> None:
    excepted = set()
    for sent in sent_to(ledger_path):
        for table, index in scanned(connection, sent):
            place = (sent.method, table)
            if index == OF_RUNNING or sent.method in SWEEPS:
                continue
            assert place in IN_ORDER or place in WHOLE, f"{place}: {plan_of(connection, sent)}\n{sent.sql}"
            excepted.add(place)
    assert excepted >= IN_ORDER.keys(), "no exception is left that nobody needs"


def test_order_of_a_statement_is_that_of_its_index(connection: sqlite3.Connection, ledger_path: Path) -> None:
    methods = {"runs.latest", "runs.page", "journal.steps", "journal.tools", "cases.page"}
    sent_by_them = [sent for sent in sent_to(ledger_path) if sent.method in methods]
    assert {sent.method for sent in sent_by_them} == methods
    for sent in sent_by_them:
        assert not any("TEMP B-TREE" in line for line in plan_of(connection, sent)), sent.sql


def test_a_statement_that_goes_through_all_rows_is_found_out(connection: sqlite3.Connection) -> None:
    sent = Sent("?", "SELECT run_id FROM diagnosis_run WHERE query = ?", ["why"])
    assert scanned(connection, sent) == [("diagnosis_run", None)]
