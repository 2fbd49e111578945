"""How long the backfill takes on Postgres, beside hand-written statements over everything.

    .venv/bin/python -m bench.backfill --sessions 200000 --steps-per-session 5 --out backfill.json

Both work on copies of one database, at head, whose rows wait. ``casenotes migrate upgrade`` is killed with SIGKILL once
half of the sessions are placed, and started again; what it takes is the time of both processes, from start to end.
The server is one of our own with fsync on, or the one that ``--url`` names, where it makes databases and drops them.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]
from alembic import command
from attrs import frozen
from sqlalchemy.engine import URL, make_url

from bench.servers import own_postgres
from casenotes.adapters import migration
from casenotes.adapters.migration import scripts
from casenotes.adapters.migration.connections import open_engine

HALFWAY = 0.5

FILL = """
INSERT INTO diagnosis_session (session_id, query, answer, status, agent_flow, self_evaluation, feedback, created_at,
    updated_at, step_count, tool_call_count)
SELECT 's-' || md5(n::text), 'Why is service ' || n || ' slow since the last deploy?', repeat(md5(n::text) || ' ', 20),
    CASE WHEN n % 10 = 0 THEN 'FAILED' ELSE 'SUCCESS' END, 'CHAT', '{{"score": 0.5}}',
    CASE WHEN n % 5 = 0 THEN 'useful' END, t, t + interval '30 s', {steps}, {tools}
FROM generate_series(1, {sessions}) n, LATERAL (SELECT timestamptz '2025-01-01' + n * interval '1 min') AS at (t);

INSERT INTO agent_step (session_id, step_number, agent_name, step_type, model, input, output, status, input_tokens,
    output_tokens, duration_ms, created_at)
SELECT 's-' || md5(n::text), k, 'executor', 'model', 'm', repeat('in ', 30), repeat(md5(k::text) || ' ', 8), 'SUCCESS',
    1000, 100, 900, timestamptz '2025-01-01' + n * interval '1 min' + k * interval '1 s'
FROM generate_series(1, {sessions}) n, generate_series(1, {steps}) k;

INSERT INTO tool_invocation (session_id, step_number, tool_name, arguments, result, status, duration_ms, created_at)
SELECT 's-' || md5(n::text), k, 'logs.search', '{{"q": "timeout"}}', repeat(md5(k::text) || ' ', 12), 'SUCCESS', 40,
    timestamptz '2025-01-01' + n * interval '1 min' + k * interval '1 s'
FROM generate_series(1, {sessions}) n, generate_series(1, {tools}) k;
"""

BY_HAND = (
    """
INSERT INTO chat_session (session_id, status, message_pair_count, created_at, last_active_at)
SELECT session_id, 'ACTIVE', CASE WHEN answer IS NULL THEN 0 ELSE 1 END, created_at, updated_at FROM diagnosis_session
""",
    """
UPDATE agent_step SET sequence = line.place,
    run_id = 'run-legacy-' || left(encode(sha256(convert_to(session_id, 'UTF8')), 'hex'), 32)
FROM (SELECT id, row_number() OVER (PARTITION BY session_id ORDER BY step_number, id) AS place FROM agent_step) line
WHERE line.id = agent_step.id
""",
    """
UPDATE tool_invocation SET sequence = line.place, result_size = octet_length(result), step_sequence = line.step,
    run_id = 'run-legacy-' || left(encode(sha256(convert_to(session_id, 'UTF8')), 'hex'), 32)
FROM (
    SELECT t.id, row_number() OVER (PARTITION BY t.session_id ORDER BY t.step_number, t.id) AS place, s.step
    FROM tool_invocation t LEFT JOIN (
        SELECT session_id, step_number, min(sequence) AS step FROM agent_step GROUP BY session_id, step_number
    ) s USING (session_id, step_number)
) line
WHERE line.id = tool_invocation.id
""",
    """
INSERT INTO diagnosis_run (run_id, session_id, query, status, agent_flow, answer, error_message, self_evaluation,
    feedback, feedback_comment, step_count, tool_call_count, created_at, updated_at, finished_at)
SELECT 'run-legacy-' || left(encode(sha256(convert_to(session_id, 'UTF8')), 'hex'), 32), session_id, query,
    CASE status WHEN 'SUCCESS' THEN 'SUCCESS' ELSE 'FAILED' END, agent_flow, answer,
    CASE status WHEN 'SUCCESS' THEN NULL ELSE 'the old system recorded the status ' || status END, self_evaluation,
    feedback, feedback_comment, coalesce(s.n, 0), coalesce(t.n, 0), created_at, updated_at, updated_at
FROM diagnosis_session
LEFT JOIN (SELECT session_id, count(*) AS n FROM agent_step GROUP BY session_id) s USING (session_id)
LEFT JOIN (SELECT session_id, count(*) AS n FROM tool_invocation GROUP BY session_id) t USING (session_id)
ORDER BY diagnosis_session.id
""",
)

DIGESTS = tuple(
    f"SELECT count(*), sum(hashtextextended(row ({columns})::text, 0)) FROM {table}"
    for table, columns in (
        ("chat_session", "session_id, status, message_pair_count, created_at, last_active_at"),
        ("agent_step", "id, session_id, run_id, sequence"),
        ("tool_invocation", "id, session_id, run_id, sequence, step_sequence, result_size"),
        (
            "diagnosis_run",
            "run_id, session_id, query, status, agent_flow, answer, error_message, self_evaluation, feedback, "
            "step_count, tool_call_count, created_at, updated_at, finished_at",
        ),
    )
)


@frozen
class Server:
    url: URL

    def database(self, name: str) -> str:
        return self.url.set(drivername="postgresql", database=name).render_as_string(hide_password=False)

    @contextmanager
    def copy(self, name: str, template: str) -> Iterator[str]:
        """A database that is dropped at the end of the block; all that is dirty is on the disk before."""
        main = self.database(self.url.database or "postgres")
        run(main, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        run(main, "CHECKPOINT")
        try:
            yield self.database(name)
        finally:
            run(main, f"DROP DATABASE {name} WITH (FORCE)")


def run(url: str, *statements: str) -> None:
    async def all_of_them() -> None:
        connection = await asyncpg.connect(url)
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    asyncio.run(all_of_them())


def values(url: str, *queries: str) -> list[tuple[object, ...]]:
    async def all_of_them() -> list[tuple[object, ...]]:
        connection = await asyncpg.connect(url)
        found = [tuple(await connection.fetchrow(query)) for query in queries]
        await connection.close()
        return found

    return asyncio.run(all_of_them())


def only_schema(url: str) -> None:
    """Bring the schema to head and leave the rows waiting."""

    async def apply() -> None:
        engine = open_engine(url)
        async with engine.begin() as connection:
            await connection.run_sync(lambda each: command.upgrade(scripts.configuration(each), "head"))
        await engine.dispose()

    asyncio.run(apply())


def by_casenotes(url: str, sessions: int) -> tuple[float, float]:
    """The seconds until it was killed half-way, and those of the one that went on."""
    argv = [sys.executable, "-m", "casenotes", "migrate", "upgrade"]
    environment = {**os.environ, "CASENOTES_DATABASE_URL": url}
    began = time.perf_counter()
    with subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            ((placed,),) = values(url, "SELECT coalesce(max(id), 0) FROM diagnosis_run")
            if isinstance(placed, int) and placed >= sessions * HALFWAY:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.1)
    if process.returncode != -signal.SIGKILL:
        raise SystemExit("it was done before it could be killed: take more sessions")
    killed = time.perf_counter()
    subprocess.run(argv, env=environment, check=True)
    return killed - began, time.perf_counter() - killed


def timed(url: str, *statements: str) -> list[float]:
    seconds = []
    for statement in statements:
        began = time.perf_counter()
        run(url, f"SET work_mem = '64MB'; {statement}")  # as casenotes has it
        seconds.append(time.perf_counter() - began)
    return seconds


def measure(server: Server, sessions: int, steps: int, tools: int) -> dict[str, object]:
    prefix = f"casenotes_bench_{os.getpid()}"
    with ExitStack() as stack:
        old = stack.enter_context(server.copy(f"{prefix}_old", "template0"))
        asyncio.run(migration.upgrade(old, "0001"))
        run(old, FILL.format(sessions=sessions, steps=steps, tools=tools))
        run(old, "VACUUM ANALYZE")

        waiting = stack.enter_context(server.copy(f"{prefix}_waiting", f"{prefix}_old"))
        began = time.perf_counter()
        only_schema(waiting)
        schema = time.perf_counter() - began

        with server.copy(f"{prefix}_floor", f"{prefix}_waiting") as floor:
            by_hand = timed(floor, *BY_HAND)
            expected = values(floor, *DIGESTS)
        with server.copy(f"{prefix}_product", f"{prefix}_waiting") as product:
            until_killed, after = by_casenotes(product, sessions)
            if values(product, *DIGESTS) != expected:
                raise SystemExit("the two do not agree about what was placed")
    return {
        "sessions": sessions,
        "steps": sessions * steps,
        "tools": sessions * tools,
        "schema_seconds": round(schema, 2),
        "by_hand_seconds": round(sum(by_hand), 2),
        "by_hand_statements": [round(each, 2) for each in by_hand],
        "casenotes_seconds": round(until_killed + after, 2),
        "until_killed_seconds": round(until_killed, 2),
        "resumed_seconds": round(after, 2),
        "ratio": round((until_killed + after) / sum(by_hand), 2),
    }


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sessions", type=int, default=200_000)
    parser.add_argument("--steps-per-session", type=int, default=5)
    parser.add_argument("--tools-per-session", type=int, default=2)
    parser.add_argument("--url", help="a server to make databases on, instead of one of our own")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    asked = parser.parse_args()
    with ExitStack() as stack:
        url = make_url(asked.url or stack.enter_context(own_postgres("max_wal_size=4GB")))
        figures = measure(Server(url), asked.sessions, asked.steps_per_session, asked.tools_per_session)
    print(json.dumps(figures, indent=2))
    if asked.out is not None:
        asked.out.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
