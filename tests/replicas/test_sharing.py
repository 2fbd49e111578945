"""Replicas that share one ledger and one conversation store, asked by many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from random import Random

from replicas.stores import Stores
from support.http import Client, client_of
from support.postgres import until
from support.process import SERVE, Process, service_process

KEY = {"Idempotency-Key": "k-1"}


@asynccontextmanager
async def clients_of(*replicas: Process) -> AsyncIterator[list[Client]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(client_of(replica.url)) for replica in replicas]


def start_two(
    stack: ExitStack, folder: Path, stores: Stores, program: tuple[str, ...] | None = None
) -> list[Process]:
    """Two replicas over these stores; unless another program is named, runs do not wait for anybody."""
    started = []
    for name in ("one", "two"):
        (folder / name).mkdir()
        more = () if program is None else (program,)
        started.append(stack.enter_context(service_process(folder / name, *more, **stores.settings)))
        if program is None:
            started[-1].let_runs_end()
    return started


def test_two_hundred_chats_over_shared_sessions_are_kept_apart_and_whole(
    stores: Stores, tmp_path: Path
) -> None:
    sessions = [f"s-{number}" for number in range(20)]

    def question(session_id: str, turn: int) -> str:
        """Some are investigated, which keeps a processor busy: not all of them at the same time."""
        asked = f"{session_id}, turn {turn}"
        return f"Why is checkout slow? {asked}" if session_id == f"s-{4 * turn}" else f"Anything new? {asked}"

    async def scenario(*replicas: Process) -> None:
        async with clients_of(*replicas) as clients:
            at_once = asyncio.Semaphore(6)

            async def converse(session_id: str) -> None:
                choice = Random(session_id)
                for turn in range(10):
                    async with at_once:
                        asked = question(session_id, turn)
                        answered = await choice.choice(clients).ask(asked, session_id)
                    assert answered["success"] and not answered["contextDegraded"], answered

            await asyncio.gather(*(converse(session_id) for session_id in sessions))
        runs = await stores.ended_runs()
        assert len(runs) == 200
        await stores.require_unmixed()
        planned = await stores.rows(
            "select run_id, input from agent_step where step_type = 'plan' order by run_id"
        )
        assert planned == sorted(
            ({"run_id": run["run_id"], "input": run["query"]} for run in runs), key=lambda row: row["run_id"]
        )
        for session_id in sessions:
            of_session = [run for run in runs if run["session_id"] == session_id]
            assert [run["query"] for run in of_session] == [question(session_id, turn) for turn in range(10)]
            said = [[run["query"], run["answer"]] for run in of_session]
            assert await stores.conversation(session_id) == said[-6:]
        counts = await stores.rows("select session_id, message_pair_count from chat_session")
        assert {row["session_id"]: row["message_pair_count"] for row in counts} == dict.fromkeys(sessions, 10)
        log = "".join(replica.log for replica in replicas)
        assert log.count('"run ended"') == 200 and all('"run ended"' in replica.log for replica in replicas)

    with ExitStack() as stack:
        asyncio.run(scenario(*start_two(stack, tmp_path, stores, SERVE)))


def test_fifty_first_messages_at_once_make_one_session_and_fifty_runs(stores: Stores, tmp_path: Path) -> None:
    async def scenario(*replicas: Process) -> None:
        async with clients_of(*replicas) as clients:
            answers = await asyncio.gather(
                *(clients[number % 2].ask(f"question {number}", "s-new") for number in range(50))
            )
        assert all(answer["success"] for answer in answers)
        runs = await stores.ended_runs()
        assert {run["run_id"] for run in runs} == {answer["runId"] for answer in answers}
        assert len(runs) == 50
        sessions = await stores.rows("select session_id, message_pair_count from chat_session")
        assert sessions == [{"session_id": "s-new", "message_pair_count": 50}]
        await stores.require_unmixed()
        strangers = await stores.rows(
            "select 1 from diagnosis_run as run join agent_step as step using (session_id, run_id)"
            " join tool_invocation as tool using (session_id, run_id)"
            " where step.input <> run.query or tool.arguments ->> 'q' <> run.query"
        )
        assert strangers == []
        said = [[run["query"], run["answer"]] for run in runs]
        pairs = await stores.conversation("s-new")
        assert len(pairs) == 6 and all(said.count(pair) == 1 for pair in pairs)

    with ExitStack() as stack:
        asyncio.run(scenario(*start_two(stack, tmp_path, stores)))


def test_idempotency_key_means_one_run_whichever_replica_is_asked(stores: Stores, tmp_path: Path) -> None:
    async def scenario(one: Process, two: Process) -> None:
        body = {"sessionId": "s-1", "question": "q"}
        async with clients_of(one, two) as (first, second):
            asked = asyncio.create_task(first.post("/api/chat", body, headers=KEY))
            await until(stores.ledger, "select 1 from agent_step", 1)
            assert (await second.post("/api/chat", body, headers=KEY)).status == 409
            one.let_runs_end()
            answered = await asked
            assert answered.status == 200 and answered.data["success"]
            again = await second.post("/api/chat", body, headers=KEY)
            assert (again.status, again.data) == (200, answered.data)
            other = await second.post("/api/chat", {**body, "question": "other"}, headers=KEY)
            assert other.status == 409
        assert len(await stores.ended_runs()) == 1

    with ExitStack() as stack:
        (tmp_path / "one").mkdir()
        (tmp_path / "two").mkdir()
        one = stack.enter_context(service_process(tmp_path / "one", **stores.settings))
        two = stack.enter_context(service_process(tmp_path / "two", **stores.settings))
        asyncio.run(scenario(one, two))


def test_keys_used_at_once_at_both_replicas_make_one_run_each(stores: Stores, tmp_path: Path) -> None:
    async def scenario(*replicas: Process) -> None:
        async with clients_of(*replicas) as clients:

            async def ask(number: int) -> int:
                key = {"Idempotency-Key": f"k-{number % 5}"}
                body = {"sessionId": "s-1", "question": "q"}
                return (await clients[number % 2].post("/api/chat", body, headers=key)).status

            assert set(await asyncio.gather(*(ask(number) for number in range(30)))) <= {200, 409}
        assert len(await stores.ended_runs()) == 5

    with ExitStack() as stack:
        asyncio.run(scenario(*start_two(stack, tmp_path, stores)))
