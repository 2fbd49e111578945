"""Recording and reading on Postgres by hand: asyncpg, prepared statements, one statement and one commit a fact."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]

from bench import work
from bench.measuring import Spoilt

_ENSURE: Final = """
INSERT INTO chat_session (session_id, status, message_pair_count, created_at, last_active_at, expires_at)
VALUES ($1, 'ACTIVE', 0, $2, $2, $3)
ON CONFLICT (session_id) DO UPDATE SET last_active_at = excluded.last_active_at, expires_at = excluded.expires_at
"""
_START: Final = """
INSERT INTO diagnosis_run (run_id, session_id, query, status, agent_flow, created_at, updated_at, step_count,
    tool_call_count, degraded, context_degraded, lease_owner, lease_expires_at)
VALUES ($1, $2, $3, 'RUNNING', 'CHAT', $4, $4, 0, 0, false, false, $5, $6)
"""
_STEP: Final = """
INSERT INTO agent_step (session_id, step_number, agent_name, step_type, model, input, output, status, error_message,
    input_tokens, output_tokens, duration_ms, created_at, run_id, sequence)
VALUES ($1, $2, $3, 'model', $4, NULL, $5, 'SUCCESS', NULL, $6, $7, $8, $9, $10, $2)
"""
_TOOL: Final = """
INSERT INTO tool_invocation (session_id, step_number, tool_name, arguments, result, status, error_message,
    duration_ms, created_at, run_id, sequence, step_sequence, result_truncated, result_size, result_is_json)
VALUES ($1, $2, $3, $4, $5, 'SUCCESS', NULL, $6, $7, $8, $2, $2, false, $9, false)
"""
_END: Final = """
UPDATE diagnosis_run SET status = 'SUCCESS', answer = $3, self_evaluation = $4, degraded = false, step_count = $5,
    tool_call_count = $6, updated_at = $7, finished_at = $7, lease_owner = NULL, lease_expires_at = NULL
WHERE session_id = $1 AND run_id = $2 AND status = 'RUNNING'
"""
_TOUCH: Final = """
UPDATE chat_session SET last_active_at = $2, expires_at = $3, message_pair_count = message_pair_count + 1
WHERE session_id = $1
"""
_SESSION: Final = "SELECT * FROM chat_session WHERE session_id = $1"
_LATEST: Final = "SELECT * FROM diagnosis_run WHERE session_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1"
_STEPS: Final = "SELECT * FROM agent_step WHERE session_id = $1 AND run_id = $2 ORDER BY sequence"
_TOOLS: Final = "SELECT * FROM tool_invocation WHERE session_id = $1 AND run_id = $2 ORDER BY sequence"

_WRITES: Final = (_ENSURE, _START, _STEP, _TOOL, _END, _TOUCH)
_READS: Final = (_SESSION, _LATEST, _STEPS, _TOOLS)

_LEASE: Final = timedelta(seconds=30)
_TTL: Final = timedelta(days=1)
_ARGUMENTS: Final = json.dumps(dict(work.ARGUMENTS))


class PostgresFloor:
    """So many connections, each with its statements prepared; whoever wants one waits for the next that is free."""

    def __init__(self, evaluation: str) -> None:
        self._free: asyncio.LifoQueue[tuple[Any, ...]] = asyncio.LifoQueue()
        self._evaluation = evaluation

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, connections: int, evaluation: str) -> AsyncIterator[PostgresFloor]:
        """``evaluation`` is the JSON text that the end of a run writes as its self-evaluation."""
        floor, opened = cls(evaluation), []
        try:
            for _ in range(connections):
                opened.append(await asyncpg.connect(url))
                statements = [await opened[-1].prepare(each) for each in (*_WRITES, *_READS)]
                floor._free.put_nowait(tuple(statement.fetch for statement in statements))
            yield floor
        finally:
            for connection in opened:
                await connection.close()

    async def _do(self, statement: int, *values: object) -> Any:
        connection = await self._free.get()
        try:
            return await connection[statement](*values)
        finally:
            self._free.put_nowait(connection)

    async def record(self, number: int) -> None:
        """A run with its facts, each statement a transaction of its own."""
        session, run = work.session_id(number), f"run-floor-{number:032}"
        await self._start(number, session, run)
        for k in range(1, work.STEPS + 1):
            output, result = work.text(number + k), work.text(number + k + 1)
            await self._do(
                2,
                session,
                k,
                work.AGENT,
                work.MODEL,
                output,
                work.INPUT_TOKENS,
                work.OUTPUT_TOKENS,
                work.STEP_MS,
                _now(),
                run,
            )
            await self._do(
                3, session, k, work.TOOL, _ARGUMENTS, result, work.TOOL_MS, _now(), run, len(result.encode())
            )
        await self._end(number, session, run, work.STEPS, work.TOOLS)

    async def record_bare(self, number: int) -> None:
        """A run without steps and tool calls: the writes of a chat whose diagnostician does nothing."""
        session, run = work.session_id(number), f"run-bare-{number:032}"
        await self._start(number, session, run)
        await self._end(number, session, run, 0, 0)

    async def _start(self, number: int, session: str, run: str) -> None:
        now = _now()
        await self._do(0, session, now, now + _TTL)
        await self._do(1, run, session, work.question(number), now, "floor", now + _LEASE)

    async def _end(self, number: int, session: str, run: str, steps: int, tools: int) -> None:
        now = _now()
        await self._do(4, session, run, work.answer(number), self._evaluation, steps, tools, now)
        await self._do(5, session, now, now + _TTL)

    async def trace(self, number: int) -> None:
        """The rows of a session's latest run: four statements, one after the other on one connection."""
        session = work.session_id(number)
        connection = await self._free.get()
        try:
            await connection[6](session)
            (run,) = await connection[7](session)
            steps = await connection[8](session, run["run_id"])
            tools = await connection[9](session, run["run_id"])
        finally:
            self._free.put_nowait(connection)
        if (len(steps), len(tools)) != (work.STEPS, work.TOOLS):
            raise Spoilt("the floor read another run than was recorded")


def _now() -> datetime:
    return datetime.now(UTC)
