"""The last judgement: all that was told is asked for again, and the rows are held against each other."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable
from typing import Any

from attrs import define
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from bench.soaking.calls import Answer, Fleet, Request
from bench.soaking.remembered import Asked, Conversation, Memory
from bench.soaking.traffic import run_list_path, session_path, trace_path

MOST_ROWS_SHOWN = 5
VERIFY_SECONDS = 600.0

UNSOUND = {
    "runs that are RUNNING": "select run_id from diagnosis_run where status = 'RUNNING'",
    "questions that were answered by two runs": (
        "select session_id, query, count(*) as runs from diagnosis_run group by session_id, query having count(*) > 1"
    ),
    "runs without a session": (
        "select run_id from diagnosis_run as run where not exists"
        " (select 1 from chat_session as chat where chat.session_id = run.session_id)"
    ),
    **{
        f"rows of {table} that are of no run of their session": (
            f"select item.id, item.run_id from {table} as item left join diagnosis_run as run using (run_id)"
            " where run.session_id is null or run.session_id <> item.session_id"
        )
        for table in ("agent_step", "tool_invocation")
    },
    **{
        f"runs whose {count} is not that of their rows, or whose rows have a gap": (
            f"select run.run_id, run.{count}, count(item.id) as found, max(item.sequence) as last"
            f" from diagnosis_run as run left join {table} as item on item.run_id = run.run_id"
            f" group by run.run_id, run.{count}"
            f" having count(item.id) <> run.{count} or coalesce(max(item.sequence), 0) <> run.{count}"
        )
        for table, count in (("agent_step", "step_count"), ("tool_invocation", "tool_call_count"))
    },
    "runs rated useful without an active case, and active cases without such a run": (
        "select run.run_id, active.diagnosis_id"
        " from (select * from diagnosis_run where feedback = 'useful' and answer is not null) as run full join"
        " (select * from case_library where source = 'AUTO' and status = 'ACTIVE') as active"
        " on active.diagnosis_id = run.run_id and active.session_id = run.session_id"
        " and active.answer = run.answer and active.query = run.query"
        " where run.run_id is null or active.diagnosis_id is null"
    ),
    "idempotency keys that stand for no run": (
        "select key from idempotency_key as held where not exists (select 1 from diagnosis_run as run"
        " where run.run_id = held.run_id and run.session_id = held.session_id)"
    ),
    "sessions that count other turns than they have": (
        "select chat.session_id, message_pair_count, count(run.run_id) as turns from chat_session as chat"
        " left join diagnosis_run as run on run.session_id = chat.session_id"
        " and run.status = 'SUCCESS' and run.agent_flow <> 'AI_OPS'"
        " group by chat.session_id, message_pair_count having message_pair_count <> count(run.run_id)"
    ),
}
"""What may not be in the ledger, and the rows that show it."""

HOLDING = (
    "chat_session",
    "diagnosis_run",
    "agent_step",
    "tool_invocation",
    "case_library",
    "idempotency_key",
)


@define
class Judge:
    """Notes in ``memory`` what is lost, mixed or unsound. To be asked when nothing is under way any more."""

    fleet: Fleet
    memory: Memory

    async def hear_all(self, at_once: int) -> None:
        """Ask for everything that was told, through HTTP."""
        turns = asyncio.Semaphore(at_once)

        async def hear(conversation: Conversation) -> None:
            async with turns:
                await self._hear(conversation)

        async with asyncio.TaskGroup() as group:
            for conversation in self.memory.conversations.values():
                group.create_task(hear(conversation))

    async def _hear(self, conversation: Conversation) -> None:
        session_id = conversation.session_id
        if conversation.erased is not None:
            for path in (trace_path(conversation), run_list_path(conversation), session_path(conversation)):
                answer = await self._get(path)
                self.memory.require(
                    answer is not None and answer.status == 404, f"{session_id} was erased, and is there"
                )
            return
        if not conversation.told:
            return
        listed = await self._get(run_list_path(conversation))
        if listed is None or not self.memory.require(
            listed.status == 200, f"the runs of {session_id}: answered {listed.status}"
        ):
            return
        self.memory.listed(conversation, listed.data, listed.first_sent)
        known = {told.run_id for told in conversation.told}
        unknown = [run["runId"] for run in listed.data if run["runId"] not in known]
        self.memory.require(not unknown, f"the runs of {session_id}: nobody was told of {unknown}")
        for told in conversation.told:
            await self._hear_run(conversation, told)

    async def _hear_run(self, conversation: Conversation, told: Asked) -> None:
        answer = await self._get(trace_path(conversation, told.run_id))
        where = f"the run {told.run_id} of {conversation.session_id}"
        if answer is not None and self.memory.require(
            answer.status == 200, f"{where} is lost: answered {answer.status}"
        ):
            self.memory.traced(conversation, answer.data, answer.first_sent, final=True)
            self.memory.last_word(conversation, answer.data)

    async def _get(self, path: str) -> Answer | None:
        answer = await self.fleet.send(Request("judgement", "GET", path))
        self.memory.require(answer is not None, f"{path}: nobody answered it in time")
        return answer

    async def hold_rows(self, ledger: str) -> None:
        """Look into the database itself: a SQLAlchemy URL."""
        erased = {one.session_id for one in self.memory.conversations.values() if one.erased is not None}
        engine = create_async_engine(ledger, poolclass=NullPool)
        try:
            async with engine.connect() as connection:
                for what, query in UNSOUND.items():
                    found = (await connection.execute(text(query))).all()
                    self.memory.require(not found, f"{len(found)} {what}: {_some(found)}")
                for table in HOLDING:
                    sessions = await connection.scalars(text(f"select distinct session_id from {table}"))
                    there = erased.intersection(sessions)
                    self.memory.require(not there, f"{table} holds rows of {_some(there)}, erased")
        finally:
            await engine.dispose()


async def verified(ledger: str) -> tuple[bool, str]:
    """Whether ``casenotes verify`` finds the ledger sound, and the end of what it says."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "casenotes", "verify"),
        env={**os.environ, "CASENOTES_DATABASE_URL": ledger},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), VERIFY_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode == 0, "\n".join(said.decode().strip().splitlines()[-20:])


def _some(found: Iterable[Any]) -> str:
    shown = [str(one) for one in found]
    more = f" and {len(shown) - MOST_ROWS_SHOWN} more" if len(shown) > MOST_ROWS_SHOWN else ""
    return ", ".join(shown[:MOST_ROWS_SHOWN]) + more
