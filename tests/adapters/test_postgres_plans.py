"""PostgreSQL finds the rows of every statement by an index, however large the tables grow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
from attrs import frozen
from support.postgres import PostgresDatabases

from casenotes.adapters.postgres import open_ledger
from casenotes.adapters.postgres.pool import PostgresConnection
from casenotes.adapters.sql.ledger import SqlLedger

LARGE = (
    "agent_step",
    "case_library",
    "chat_session",
    "diagnosis_run",
    "diagnosis_session",
    "idempotency_key",
    "session_tombstone",
    "tool_invocation",
)
OF_RUNNING = "ix_diagnosis_run_lease"
"""An index of the RUNNING runs alone: as large as what is executed at the moment, however large the table."""

TEXT_OF_ALL = Sent("?", "SELECT run_id FROM diagnosis_run WHERE query = $1", ["why"])
"""A statement without an index."""

FILL = """
INSERT INTO chat_session (session_id, status, message_pair_count, created_at, last_active_at)
SELECT 'session-' || n, 'ACTIVE', 4, moment, moment
FROM generate_series(1, 5000) AS n, LATERAL (SELECT timestamptz '2026-01-01' + n * interval '1 minute' AS moment) AS m;

INSERT INTO diagnosis_run
    (run_id, session_id, query, status, agent_flow, answer, created_at, updated_at, lease_expires_at)
SELECT 'run-' || n, 'session-' || (n % 5000 + 1), 'why ' || n, CASE WHEN n % 500 = 0 THEN 'RUNNING' ELSE 'SUCCESS' END,
       'CHAT', repeat('because ', 20), moment, moment, CASE WHEN n % 500 = 0 THEN moment END
FROM generate_series(1, 20000) AS n, LATERAL (SELECT timestamptz '2026-01-01' + n * interval '1 minute' AS moment) AS m;

INSERT INTO agent_step (session_id, run_id, sequence, agent_name, step_type, status, created_at)
SELECT session_id, run_id, sequence, 'planner', 'model', 'SUCCESS', created_at
FROM diagnosis_run, generate_series(1, 3) AS sequence;

INSERT INTO tool_invocation (session_id, run_id, sequence, tool_name, result, status, created_at)
SELECT session_id, run_id, sequence, 'logs.search', 'three lines', 'SUCCESS', created_at
FROM diagnosis_run, generate_series(1, 3) AS sequence;

INSERT INTO case_library (diagnosis_id, session_id, query, answer, source, created_at, updated_at)
SELECT run_id, session_id, query, answer, 'AUTO', created_at, updated_at FROM diagnosis_run WHERE id % 4 = 0;

INSERT INTO idempotency_key (key, body_digest, session_id, run_id, created_at)
SELECT 'key-' || id, 'digest', session_id, run_id, created_at FROM diagnosis_run WHERE id % 2 = 0;

INSERT INTO diagnosis_session (session_id, query, status, created_at, updated_at)
SELECT 'old-' || n, 'why ' || n, 'DONE', now(), now() FROM generate_series(1, 5000) AS n;

INSERT INTO session_tombstone (session_digest, runs, agent_steps, tool_invocations, cases, ended_run_count, erased_at)
SELECT md5(n::text), 4, 12, 12, 1, 4, now() FROM generate_series(1, 5000) AS n;

ANALYZE;
"""


@frozen
class Node:
    """A part of a plan that reads a table."""

    kind: str
    table: str
    index: str | None
    is_by_condition: bool
    """Whether the index finds the rows; else all that it holds are read, in its order."""


def nodes(plan: Mapping[str, Any]) -> Iterator[Node]:
    """What a plan reads."""
    if plan["Node Type"].endswith("Scan") and plan.get("Relation Name") in LARGE:
        bitmap = plan["Node Type"] == "Bitmap Heap Scan"
        yield Node(
            plan["Node Type"], plan["Relation Name"], plan.get("Index Name"), bitmap or "Index Cond" in plan
        )
    for part in plan.get("Plans", ()):
        yield from nodes(part)


async def plans(connection: PostgresConnection, sent: Sent) -> Sequence[Mapping[str, Any]]:
    """The plan for these very arguments, and that for any, which a server may keep for a prepared statement."""
    particular = await connection.fetch(f"EXPLAIN (FORMAT JSON) {sent.sql}", sent.arguments)
    await connection.told("SET LOCAL plan_cache_mode = force_generic_plan")
    await connection.told(f"PREPARE asked AS {sent.sql}")
    nothing = ", ".join(["NULL"] * len(sent.arguments))
    call = f"asked({nothing})" if nothing else "asked"
    generic = await connection.fetch(f"EXPLAIN (FORMAT JSON) EXECUTE {call}", ())
    await connection.told("DEALLOCATE asked")
    return [json.loads(rows[0]["QUERY PLAN"])[0]["Plan"] for rows in (particular, generic)]


async def read_by(ledger: SqlLedger, statements: Sequence[Sent]) -> Sequence[tuple[Sent, Node]]:
    """What each statement reads, by the plans of the server."""
    found = []
    async with ledger.writing.connection() as connection:
        assert isinstance(connection, PostgresConnection)
        await connection.begin()
        for sent in statements:
            for plan in await plans(connection, sent):
                found += [(sent, node) for node in nodes(plan)]
    return found


@pytest.fixture(scope="module")
def read(postgres: PostgresDatabases) -> Sequence[tuple[Sent, Node]]:
    """What all statements read in a large database, and which methods sent them."""

    async def explained(url: str) -> Sequence[tuple[Sent, Node]]:
        ledger = open_ledger(url)
        try:
            async with ledger.writing.connection() as connection:
                assert isinstance(connection, PostgresConnection)
                await connection.told(FILL)
            work, outside = await use_work(ledger), await use_outside(ledger)
            assert work.called == methods_of_work()
            assert outside.called == methods_outside()
            return await read_by(
                ledger, [*work.reading_and_writing(), *outside.reading_and_writing(), TEXT_OF_ALL]
            )
        finally:
            await ledger.close()

    with postgres.copy("head") as url:
        return asyncio.run(explained(url))


def test_no_statement_reads_all_rows_of_a_large_table(read: Sequence[tuple[Sent, Node]]) -> None:
    for sent, node in read:
        place = (sent.method, node.table)
        if sent is TEXT_OF_ALL or sent.method in SWEEPS or place in WHOLE:
            continue
        assert node.index is not None or node.is_by_condition, f"{place}: {node.kind}\n{sent.sql}"
        if place not in IN_ORDER:
            assert node.is_by_condition or node.index == OF_RUNNING, f"{place}: {node.kind}\n{sent.sql}"


def test_every_exception_is_needed(read: Sequence[tuple[Sent, Node]]) -> None:
    without = {(sent.method, node.table) for sent, node in read if not node.is_by_condition}
    assert IN_ORDER.keys() | WHOLE.keys() <= without


def test_a_statement_that_reads_all_rows_is_found_out(read: Sequence[tuple[Sent, Node]]) -> None:
    found = [node for sent, node in read if sent is TEXT_OF_ALL]
    assert {(node.kind, node.table, node.index, node.is_by_condition) for node in found} == {
        ("Seq Scan", "diagnosis_run", None, False)
    }


def test_runs_that_entries_are_written_to_are_found_by_their_ids_and_not_among_all_that_run(
    read: Sequence[tuple[Sent, Node]],
) -> None:
    found = {
        node.index for sent, node in read if sent.method == "ledger.record" and node.table == "diagnosis_run"
    }
    assert found == {"diagnosis_run_run_id_key"}, "until a vacuum, the other index holds all that ever ran"
