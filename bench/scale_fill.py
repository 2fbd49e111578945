"""Records of many runs, put into the tables by statements of their own; their shape is that of recorded ones."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy.engine import make_url

from bench import work

FEW: Final = 1_000
RUNS_IN_SESSION: Final = 5
BUSY: Final = "chat-busy"
CALM: Final = "chat-calm"
RUNS_OF: Final[Mapping[str, int]] = {BUSY: 10_000, CALM: 10}

_CHUNK: Final = 100_000
_DATABASES: Final = ("casenotes_few", "casenotes_many")
_BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)

_LOADED: Final = ("chat_session", "diagnosis_run", "agent_step", "tool_invocation")

_SESSION: Final = f"'chat-' || md5(((n - 1) / {RUNS_IN_SESSION})::text)"
_RUN: Final = "'run-' || lpad(n::text, 32, '0')"
_AT: Final = "timestamptz '2026-01-01' + n * interval '1 s'"

_SESSIONS_SQL: Final = """
INSERT INTO chat_session (session_id, status, message_pair_count, created_at, last_active_at, expires_at)
SELECT session_id, 'ACTIVE', count(*), min(created_at), max(finished_at), max(finished_at) + interval '1 day'
FROM diagnosis_run GROUP BY session_id
"""
_RUNS_SQL: Final = """
INSERT INTO diagnosis_run (run_id, session_id, query, status, agent_flow, answer, self_evaluation, step_count,
    tool_call_count, created_at, updated_at, finished_at)
SELECT {run}, {session}, 'Why does checkout answer slowly since build ' || n || '?', 'SUCCESS', 'CHAT',
    rpad('The connection pool is exhausted [T1]. ' || md5(n::text), {size}, 'and so on '),
    '{{"evidence_coverage": 1.0, "tool_count": 6}}', {steps}, {tools}, {at}, {at} + interval '9 s',
    {at} + interval '9 s'
FROM generate_series({first}, {last}) AS n ORDER BY n
"""
_STEPS_SQL: Final = f"""
INSERT INTO agent_step (session_id, step_number, agent_name, step_type, model, output, status, input_tokens,
    output_tokens, duration_ms, created_at, run_id, sequence)
SELECT {_SESSION}, k, 'executor', 'model', 'm-1', rpad(md5((n * 7 + k)::text), {work.OUTPUT_BYTES}, 'a word '),
    'SUCCESS', 1200, 130, 900, {_AT} + k * interval '1 s', {_RUN}, k
FROM generate_series({{first}}, {{last}}) AS n, generate_series(1, {work.STEPS}) AS k ORDER BY n, k
"""
_TOOLS_SQL: Final = f"""
INSERT INTO tool_invocation (session_id, step_number, tool_name, arguments, result, status, duration_ms, created_at,
    run_id, sequence, step_sequence, result_size)
SELECT {_SESSION}, k, 'logs.search', '{{{{"query": "timeout", "minutes": 30}}}}',
    rpad(md5((n * 7 + k)::text), {work.OUTPUT_BYTES}, 'a line '), 'SUCCESS', 40, {_AT} + k * interval '1 s', {_RUN},
    k, k, {work.OUTPUT_BYTES}
FROM generate_series({{first}}, {{last}}) AS n, generate_series(1, {work.TOOLS}) AS k ORDER BY n, k
"""


def session_id(number: int) -> str:
    """The session of this number, from 0."""
    return f"chat-{hashlib.md5(str(number).encode()).hexdigest()}"


async def postgres_databases(url: str) -> tuple[str, str]:
    """The URLs of two new databases on this server."""
    connection = await asyncpg.connect(url)
    for name in _DATABASES:
        await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    few, many = (
        make_url(url).set(database=name).render_as_string(hide_password=False) for name in _DATABASES
    )
    return few, many


async def drop_postgres_databases(url: str) -> None:
    connection = await asyncpg.connect(url)
    for name in _DATABASES:
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await connection.close()


async def fill_postgres(url: str, runs: int) -> int:
    """Put the runs there, and what is theirs; gives the size of the database in bytes."""
    connection = await asyncpg.connect(url)
    indexes = await connection.fetch(
        "SELECT indexname AS name, indexdef AS statement FROM pg_indexes WHERE tablename = ANY($1) AND indexname NOT IN"
        " (SELECT conname FROM pg_constraint)",
        list(_LOADED),
    )
    for index in indexes:
        await connection.execute(f"DROP INDEX {index['name']}")
    for first in range(1, runs + 1, _CHUNK):
        span = {"first": first, "last": min(runs, first + _CHUNK - 1)}
        await connection.execute(_runs_of(_SESSION, _RUN, span, work.STEPS, work.TOOLS))
        await connection.execute(_STEPS_SQL.format(**span))
        await connection.execute(_TOOLS_SQL.format(**span))
    for session, number in RUNS_OF.items():
        run = f"'run-{session}-' || n"
        await connection.execute(_runs_of(f"'{session}'", run, {"first": 1, "last": number}, 0, 0))
    await connection.execute(_SESSIONS_SQL)
    for index in indexes:
        await connection.execute(index["statement"])
    await connection.execute("VACUUM ANALYZE")
    await connection.execute("CHECKPOINT")
    size: int = await connection.fetchval("SELECT pg_database_size(current_database())")
    await connection.close()
    return size


def _runs_of(session: str, run: str, span: Mapping[str, int], steps: int, tools: int) -> str:
    return _RUNS_SQL.format(
        session=session, run=run, at=_AT, size=work.OUTPUT_BYTES, steps=steps, tools=tools, **span
    )


def fill_sqlite(file: Path, runs: int) -> None:
    """Put the runs there, and what is theirs."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        for at, (session, number) in enumerate(_sessions(runs)):
            made = (session, "ACTIVE", number, _stored(at), _stored(at + 9), _stored(at + 86_400))
            connection.execute(
                "INSERT INTO chat_session (session_id, status, message_pair_count, created_at, last_active_at,"
                " expires_at) VALUES (?, ?, ?, ?, ?, ?)",
                made,
            )
        connection.executemany(
            "INSERT INTO diagnosis_run (run_id, session_id, query, status, agent_flow, answer, self_evaluation,"
            " step_count, tool_call_count, created_at, updated_at, finished_at)"
            " VALUES (?, ?, ?, 'SUCCESS', 'CHAT', ?, '{\"tool_count\": 6}', ?, ?, ?, ?, ?)",
            _run_rows(runs),
        )
        connection.executemany(
            "INSERT INTO agent_step (session_id, run_id, sequence, step_number, agent_name, step_type, model, output,"
            " status, input_tokens, output_tokens, duration_ms, created_at)"
            " VALUES (?, ?, ?, ?, 'executor', 'model', 'm-1', ?, 'SUCCESS', 1200, 130, 900, ?)",
            _fact_rows(runs, work.STEPS),
        )
        connection.executemany(
            "INSERT INTO tool_invocation (session_id, run_id, sequence, step_sequence, step_number, tool_name,"
            " arguments, result, status, duration_ms, created_at, result_size)"
            " VALUES (?1, ?2, ?3, ?4, ?4, 'logs.search', '{\"query\": \"timeout\"}', ?5, 'SUCCESS', 40, ?6, 500)",
            _fact_rows(runs, work.TOOLS),
        )
        connection.execute("COMMIT")
        connection.execute("ANALYZE")


def _sessions(runs: int) -> Iterator[tuple[str, int]]:
    yield from ((session_id(number), RUNS_IN_SESSION) for number in range(-(-runs // RUNS_IN_SESSION)))
    yield from RUNS_OF.items()


def _run_rows(runs: int) -> Iterator[tuple[Any, ...]]:
    for n in range(runs):
        yield _run_row(n, session_id(n // RUNS_IN_SESSION), f"run-{n:032}", work.STEPS, work.TOOLS)
    for session, number in RUNS_OF.items():
        yield from (_run_row(n, session, f"run-{session}-{n}", 0, 0) for n in range(number))


def _run_row(n: int, session: str, run: str, steps: int, tools: int) -> tuple[Any, ...]:
    at, end = _stored(n), _stored(n + 9)
    return (run, session, work.question(n), work.answer(n), steps, tools, at, end, end)


def _fact_rows(runs: int, number: int) -> Iterator[tuple[Any, ...]]:
    for n in range(runs):
        session, run, at = session_id(n // RUNS_IN_SESSION), f"run-{n:032}", _stored(n)
        yield from ((session, run, k, k, work.text(n + k), at) for k in range(1, number + 1))


def _stored(second: int) -> str:
    return f"{_BEGAN + timedelta(seconds=second):%Y-%m-%d %H:%M:%S.%f}"
