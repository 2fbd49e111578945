"""The invariants have teeth: a ledger that one statement has spoilt is not sound."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from faults.scene import play, replica
from support.invariants import assert_sound

SPOILT = {
    "a run that is still running": "update diagnosis_run set status = 'RUNNING' where id = 1",
    "an answered run without its answer": "update diagnosis_run set answer = null where id = 1",
    "an answered run with an error": "update diagnosis_run set error_message = 'x' where id = 1",
    "an answered run without evaluation": "update diagnosis_run set self_evaluation = null where id = 1",
    "a failed run with an answer": "update diagnosis_run set status = 'FAILED' where id = 1",
    "a lease that is still held": "update diagnosis_run set lease_owner = 'x' where id = 1",
    "an end before the beginning": "update diagnosis_run set finished_at = '2000-01-01 00:00:00.000000'",
    "a run without an end": "update diagnosis_run set finished_at = null where id = 1",
    "a step too many": "update diagnosis_run set step_count = 0 where id = 1",
    "a lost tool call": "delete from tool_invocation where run_id = (select run_id from diagnosis_run limit 1)",
    "a step of another session": "update agent_step set session_id = 't' where id = 1",
    "a tool call of no run": "update tool_invocation set run_id = 'run-x' where id = 1",
    "a half-written step": "update agent_step set status = null where id = 1",
    "a half-written tool call": "update tool_invocation set tool_name = null where id = 1",
    "a useful run without its case": "delete from case_library",
    "a case that was withdrawn": "update case_library set status = 'WITHDRAWN'",
    "a case of another answer": "update case_library set answer = 'x'",
    "a case of no run": "update case_library set diagnosis_id = 'run-x'",
    "a case of a run that is not useful": "update diagnosis_run set feedback = 'not_useful'",
    "a run without its session": "delete from chat_session where session_id = 's'",
    "a pair too many": "update chat_session set message_pair_count = 9 where session_id = 's'",
    "a session asleep": "update chat_session set last_active_at = '2000-01-01 00:00:00.000000'",
    "a key of no run": "insert into idempotency_key values ('k', 'd', 's', 'run-x', '2026-01-01 00:00:00.000000')",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with two sessions, and a run that was rated useful."""
    file = tmp_path_factory.mktemp("sound") / "casenotes.db"

    async def scenario() -> None:
        url = f"sqlite+aiosqlite:///{file}"
        async with replica(url) as here:
            await here.ask("s")
            await here.ask("t")
            await here.service.feedback.give("s", "useful")
        await assert_sound(url)

    play(scenario)
    return file


@pytest.fixture
def ledger(sound: Path, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A copy, to be spoilt."""
    file = tmp_path / "casenotes.db"
    file.write_bytes(sound.read_bytes())
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


@pytest.mark.parametrize("statement", SPOILT.values(), ids=SPOILT)
def test_ledger_that_was_spoilt_is_not_sound(
    statement: str, ledger: sqlite3.Connection, tmp_path: Path
) -> None:
    assert ledger.execute(statement).rowcount > 0
    with pytest.raises(AssertionError):
        asyncio.run(assert_sound(f"sqlite+aiosqlite:///{tmp_path / 'casenotes.db'}"))


def test_file_that_somebody_holds_is_not_sound(ledger: sqlite3.Connection, tmp_path: Path) -> None:
    ledger.execute("begin immediate")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        asyncio.run(assert_sound(f"sqlite+aiosqlite:///{tmp_path / 'casenotes.db'}"))


def test_task_that_was_left_is_seen(ledger: sqlite3.Connection, tmp_path: Path) -> None:
    async def scenario() -> None:
        left = asyncio.create_task(asyncio.Event().wait())
        with pytest.raises(AssertionError):
            await assert_sound(f"sqlite+aiosqlite:///{tmp_path / 'casenotes.db'}")
        left.cancel()

    play(scenario)
