"""Recording and reading in SQLite by hand: one connection, WAL, synchronous FULL, one commit a fact, in one thread."""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from bench import work
from bench.measuring import Spoilt

_ENSURE: Final = """
INSERT INTO chat_session (session_id, status, message_pair_count, created_at, last_active_at, expires_at)
VALUES (?1, 'ACTIVE', 0, ?2, ?2, ?3)
ON CONFLICT (session_id) DO UPDATE SET last_active_at = excluded.last_active_at, expires_at = excluded.expires_at
"""
_START: Final = """
INSERT INTO diagnosis_run (run_id, session_id, query, status, agent_flow, created_at, updated_at, step_count,
    tool_call_count, degraded, context_degraded, lease_owner, lease_expires_at)
VALUES (?1, ?2, ?3, 'RUNNING', 'CHAT', ?4, ?4, 0, 0, 0, 0, ?5, ?6)
"""
_STEP: Final = """
INSERT INTO agent_step (session_id, step_number, agent_name, step_type, model, input, output, status, error_message,
    input_tokens, output_tokens, duration_ms, created_at, run_id, sequence)
VALUES (?1, ?2, ?3, 'model', ?4, NULL, ?5, 'SUCCESS', NULL, ?6, ?7, ?8, ?9, ?10, ?2)
"""
_TOOL: Final = """
INSERT INTO tool_invocation (session_id, step_number, tool_name, arguments, result, status, error_message,
    duration_ms, created_at, run_id, sequence, step_sequence, result_truncated, result_size, result_is_json)
VALUES (?1, ?2, ?3, ?4, ?5, 'SUCCESS', NULL, ?6, ?7, ?8, ?2, ?2, 0, ?9, 0)
"""
_END: Final = """
UPDATE diagnosis_run SET status = 'SUCCESS', answer = ?3, self_evaluation = ?4, degraded = 0, step_count = ?5,
    tool_call_count = ?6, updated_at = ?7, finished_at = ?7, lease_owner = NULL, lease_expires_at = NULL
WHERE session_id = ?1 AND run_id = ?2 AND status = 'RUNNING'
"""
_TOUCH: Final = """
UPDATE chat_session SET last_active_at = ?2, expires_at = ?3, message_pair_count = message_pair_count + 1
WHERE session_id = ?1
"""
_SESSION: Final = "SELECT * FROM chat_session WHERE session_id = ?"
_LATEST: Final = "SELECT * FROM diagnosis_run WHERE session_id = ? ORDER BY created_at DESC, id DESC LIMIT 1"
_STEPS: Final = "SELECT * FROM agent_step WHERE session_id = ? AND run_id = ? ORDER BY sequence"
_TOOLS: Final = "SELECT * FROM tool_invocation WHERE session_id = ? AND run_id = ? ORDER BY sequence"

_LEASE: Final = timedelta(seconds=30)
_TTL: Final = timedelta(days=1)
_ARGUMENTS: Final = json.dumps(dict(work.ARGUMENTS))


class SqliteFloor:
    """A connection that commits by itself after each statement."""

    def __init__(self, connection: sqlite3.Connection, evaluation: str) -> None:
        self._connection = connection
        self._evaluation = evaluation

    @classmethod
    @contextmanager
    def open(cls, file: Path, evaluation: str) -> Iterator[SqliteFloor]:
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.row_factory = sqlite3.Row
            yield cls(connection, evaluation)

    def record(self, numbers: Sequence[int], concurrency: int) -> None:
        """Runs with their facts, so many at a time taking turns fact by fact."""
        waiting = iter(numbers)
        under_way = deque(self._facts(number) for _, number in zip(range(concurrency), waiting, strict=False))
        while under_way:
            run = under_way.popleft()
            if next(run, False):
                under_way.append(run)
            elif (number := next(waiting, None)) is not None:
                under_way.append(self._facts(number))

    def _facts(self, number: int) -> Iterator[bool]:
        session, run = work.session_id(number), f"run-floor-{number:032}"
        now = datetime.now(UTC)
        yield self._do(_ENSURE, session, _stored(now), _stored(now + _TTL))
        yield self._do(
            _START, run, session, work.question(number), _stored(now), "floor", _stored(now + _LEASE)
        )
        for k in range(1, work.STEPS + 1):
            output, result = work.text(number + k), work.text(number + k + 1)
            yield self._do(
                _STEP,
                session,
                k,
                work.AGENT,
                work.MODEL,
                output,
                work.INPUT_TOKENS,
                work.OUTPUT_TOKENS,
                work.STEP_MS,
                _stored(datetime.now(UTC)),
                run,
            )
            at, size = _stored(datetime.now(UTC)), len(result.encode())
            yield self._do(_TOOL, session, k, work.TOOL, _ARGUMENTS, result, work.TOOL_MS, at, run, size)
        now = datetime.now(UTC)
        end = (session, run, work.answer(number), self._evaluation, work.STEPS, work.TOOLS, _stored(now))
        yield self._do(_END, *end)
        yield self._do(_TOUCH, session, _stored(now), _stored(now + _TTL))

    def _do(self, statement: str, *values: object) -> bool:
        self._connection.execute(statement, values)
        return True

    def trace(self, number: int) -> None:
        """The rows of a session's latest run: four statements."""
        session = work.session_id(number)
        self._connection.execute(_SESSION, (session,)).fetchall()
        (run,) = self._connection.execute(_LATEST, (session,)).fetchall()
        steps = self._connection.execute(_STEPS, (session, run["run_id"])).fetchall()
        tools = self._connection.execute(_TOOLS, (session, run["run_id"])).fetchall()
        if (len(steps), len(tools)) != (work.STEPS, work.TOOLS):
            raise Spoilt("the floor read another run than was recorded")


def _stored(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S.%f}"
