"""The soak itself: that it holds in small, and that what it judges by would see a loss, a mix and an unsound row."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from aiohttp import ClientSession
from support.postgres import PostgresDatabases, rows
from support.process import SERVE, service_process

from bench.soaking.calls import CallLog, Fleet
from bench.soaking.faults import Faulty, Progress
from bench.soaking.judging import Judge
from bench.soaking.remembered import Memory
from bench.soaking.traffic import Traffic, drive

ROOT = Path(__file__).parent.parent.parent
REQUESTS = 400
DEADLINE_SECONDS = 600
"""Of the soak, which ends what it started; the test waits a little longer."""

_ANSWERED = "select run_id from diagnosis_run where answer like 'I have no evidence%' order by id limit 1"
_RATED = "select run_id from diagnosis_run where feedback = 'useful' order by id limit 1"

DAMAGE = {
    "an answer is another": (
        f"update diagnosis_run set answer = 'another' where run_id = ({_ANSWERED})",
        "was told SUCCESS",
    ),
    "a step says something else": (
        "update agent_step set output = 'else' where id = (select min(id) from agent_step)",
        "steps or tool calls have changed",
    ),
    "a step is gone": (
        "delete from agent_step where id = (select max(id) from agent_step)",
        "stepCount is",
    ),
    "a tool call is of another session": (
        "update tool_invocation set session_id = 'other' where id = (select max(id) from tool_invocation)",
        "rows of tool_invocation that are of no run of their session",
    ),
    "a feedback is an earlier one": (
        f"update diagnosis_run set feedback_comment = 'earlier' where run_id = ({_RATED})",
        "and should be one of",
    ),
    "a case is gone": (
        "delete from case_library where id = (select max(id) from case_library where status = 'ACTIVE')",
        "runs rated useful without an active case",
    ),
    "a turn was not counted": (
        "update chat_session set message_pair_count = message_pair_count - 1 where message_pair_count > 0",
        "sessions that count other turns than they have",
    ),
    "a run is lost": (
        "delete from diagnosis_run where id = (select max(id) from diagnosis_run)",
        "is lost: answered 404",
    ),
    "a run is in another session": (
        "update diagnosis_run set session_id = (select max(session_id) from chat_session where session_id <>"
        f" diagnosis_run.session_id) where run_id = ({_ANSWERED})",
        "nobody asked what",
    ),
    "a run still runs": (
        "update diagnosis_run set status = 'RUNNING', lease_expires_at = now() + interval '1 hour'"
        " where id = (select max(id) from diagnosis_run)",
        "runs that are RUNNING",
    ),
    "an erased session is back": (
        "insert into chat_session (session_id, status, created_at, last_active_at)"
        " values ('{erased}', 'ACTIVE', now(), now())",
        "was erased, and is there",
    ),
}
"""Done one after the other; after each, the judge must find what was done."""


def test_judge_sees_what_is_lost_mixed_and_unsound(
    postgres: PostgresDatabases, fresh_redis: str, tmp_path: Path
) -> None:
    async def scenario(url: str, ledger: str) -> None:
        progress = Progress(60)
        await progress.let_go_on(1)
        async with ClientSession() as http:
            fleet = Fleet([url], http, Faulty(), CallLog(), Random(1))
            memory = Memory()
            traffic = Traffic(fleet, memory, progress, Random(7), open_at_once=4)
            await drive(traffic, 1)  # one client, so that it is always the same traffic
            to_erase = next(one for one in memory.conversations.values() if one.told and one.erased is None)
            await traffic.erase(to_erase)
            judge = Judge(fleet, memory)

            async def judged() -> str:
                memory.wrong.clear()
                await judge.hear_all(4)
                await judge.hold_rows(ledger)
                return "\n".join(memory.wrong)

            assert memory.wrong == []
            before = await judged()
            assert before == ""
            for what, (damage, complaint) in DAMAGE.items():
                statement = damage.replace("{erased}", to_erase.session_id)
                assert await rows(ledger, f"{statement} returning 1 as done"), what
                after = await judged()
                assert complaint in after and complaint not in before, what
                before = after

    with (
        postgres.copy("head") as ledger,
        service_process(tmp_path, SERVE, database_url=ledger, context_url=fresh_redis) as replica,
    ):
        asyncio.run(scenario(replica.url, ledger))


@pytest.mark.long
def test_nothing_is_lost_or_mixed_while_parts_die_under_traffic(tmp_path: Path) -> None:
    figures = tmp_path / "soak.json"
    command = [sys.executable, "-m", "bench.soak", "--requests", str(REQUESTS), "--lease", "3"]
    command += ["--deadline", str(DEADLINE_SECONDS)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CASENOTES_")}
    done = subprocess.run(
        [*command, "--json", str(figures)],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=2 * DEADLINE_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(figures.read_text())
    assert found["requests"] == REQUESTS and found["wrong"] == []
    assert found["faults"] == ["replica killed", "PostgreSQL restarted", "Redis replaced"]
    during = " ".join(refused["during"] for refused in found["refused"])
    assert "replica killed" in during and "PostgreSQL restarted" in during, "traffic did not meet the faults"
    assert any("Redis replaced" in met for met in found["told"]["degradedContexts"])
