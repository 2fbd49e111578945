"""A service that is stopped, killed and started again, in a process of its own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from aiohttp import ClientConnectionError
from support.http import Client, client_of
from support.process import Process, service_process

SHUT_DOWN = "the service was shut down before the run had ended"
ORPHANED = "the process that executed the run went away before the run had ended"


async def reach_the_wait(
    client: Client, path: str, body: dict[str, Any]
) -> tuple[str, asyncio.Task[list[str]]]:
    """Start a run and wait until it waits; gives its id, and the kinds of events that are still to come."""
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def follow() -> list[str]:
        async with client.streaming(path, body) as (_, events):
            run_id = (await anext(events)).payload["runId"]
            assert (await anext(events)).payload == "waiting"
            told.set_result(run_id)
            return [f"{event.type}: {event.payload}" async for event in events]

    task = asyncio.create_task(follow())
    either: set[asyncio.Future[Any]] = {task, told}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        await task
    return await told, task


async def refuses_connections(service: Process) -> None:
    """Wait until nobody can connect any more."""
    async with asyncio.timeout(60):
        while True:
            try:
                async with client_of(service.url) as client:
                    await client.get("/healthz")
            except ClientConnectionError:
                return


async def ended_run(client: Client, session_id: str, run_id: str) -> dict[str, Any]:
    """The run's trace, once it has ended."""
    async with asyncio.timeout(60):
        while True:
            trace = (await client.trace(session_id, run_id)).data
            if trace["run"]["status"] != "RUNNING":
                assert isinstance(trace, dict)
                return trace
            await asyncio.sleep(0.05)


def test_sigterm_lets_a_run_finish_within_the_grace_and_answers_its_client(tmp_path: Path) -> None:
    async def scenario(service: Process) -> str:
        async with client_of(service.url) as client:
            body = {"sessionId": "s-1", "question": "why"}
            run_id, rest = await reach_the_wait(client, "/api/chat_stream", body)
            service.terminate()
            await refuses_connections(service)
            service.let_runs_end()
            assert await rest == ["content: found [T1]\n", "done: None"]
            return run_id

    async def after(service: Process, run_id: str) -> None:
        async with client_of(service.url) as client:
            trace = (await client.trace("s-1", run_id)).data
            assert trace["run"]["status"] == "SUCCESS" and trace["answer"] == "found [T1]\n"

    with service_process(tmp_path, shutdown_grace="60") as service:
        run_id = asyncio.run(scenario(service))
        assert service.exit_status() == 0
    with service_process(tmp_path) as service:
        asyncio.run(after(service, run_id))


def test_sigterm_ends_what_does_not_finish_and_says_so(tmp_path: Path) -> None:
    async def scenario(service: Process) -> list[str]:
        async with client_of(service.url) as client:
            made = []
            for path, body in (
                ("/api/chat_stream", {"sessionId": "s-1", "question": "why"}),
                ("/api/ai_ops", {"sessionId": "s-1"}),
            ):
                made.append(await reach_the_wait(client, path, body))
            service.terminate()
            for _, rest in made:
                assert await rest == [f"error: {SHUT_DOWN}"]
            return [run_id for run_id, _ in made]

    async def after(service: Process, graph: str, aiops: str) -> None:
        async with client_of(service.url) as client:
            for run_id in (graph, aiops):
                trace = (await client.trace("s-1", run_id)).data
                assert (trace["run"]["status"], trace["run"]["errorMessage"]) == ("FAILED", SHUT_DOWN)
                assert len(trace["agentSteps"]) == len(trace["toolInvocations"]) == 1
                assert trace["run"]["stepCount"] == trace["run"]["toolCallCount"] == 1
            orchestration = (await client.trace("s-1", graph)).data["run"]["orchestrationTrace"]
            assert orchestration["terminationReason"] == "INTERRUPTED"
            assert orchestration["transitions"] == [{"from": "START", "to": "planner"}]

    with service_process(tmp_path, shutdown_grace="0.1") as service:
        graph, aiops = asyncio.run(scenario(service))
        assert service.exit_status() == 0
    with service_process(tmp_path) as service:
        asyncio.run(after(service, graph, aiops))


def test_a_killed_process_leaves_no_run_running(tmp_path: Path) -> None:
    async def scenario(service: Process) -> str:
        async with client_of(service.url) as client:
            run_id, rest = await reach_the_wait(client, "/api/ai_ops", {"sessionId": "s-1"})
            service.kill()
            await asyncio.gather(rest, return_exceptions=True)
            return run_id

    async def after(service: Process, run_id: str) -> None:
        async with client_of(service.url) as client:
            trace = await ended_run(client, "s-1", run_id)
            assert (trace["run"]["status"], trace["run"]["errorMessage"]) == ("FAILED", ORPHANED)
            assert trace["run"]["stepCount"] == trace["run"]["toolCallCount"] == 1
            assert trace["answer"] is None and len(trace["toolInvocations"]) == 1

    with service_process(tmp_path, run_lease="0.5") as service:
        run_id = asyncio.run(scenario(service))
    with service_process(tmp_path, run_lease="0.5") as service:
        asyncio.run(after(service, run_id))


def test_a_second_process_leaves_a_living_run_alone(tmp_path: Path) -> None:
    async def scenario(owner: Process, other: Process) -> None:
        async with client_of(owner.url) as client, client_of(other.url) as another:
            run_id, rest = await reach_the_wait(client, "/api/ai_ops", {"sessionId": "s-1"})
            await asyncio.sleep(2)  # four leases
            assert (await another.trace("s-1", run_id)).data["run"]["status"] == "RUNNING"
            owner.let_runs_end()
            assert (await rest)[-1] == "done: None"
            assert (await another.trace("s-1", run_id)).data["run"]["status"] == "SUCCESS"

    with (
        service_process(tmp_path, run_lease="0.5") as owner,
        service_process(tmp_path, run_lease="0.5") as other,
    ):
        asyncio.run(scenario(owner, other))


def test_what_was_recorded_reads_the_same_after_a_restart(tmp_path: Path) -> None:
    async def ask(service: Process) -> dict[str, bytes]:
        service.let_runs_end()
        async with client_of(service.url) as client:
            for question in ("hello", "why"):
                await client.ask(question, "s-1")
            await client.rate("s-1")
            return await read(client)

    async def read(client: Client) -> dict[str, bytes]:
        paths = ("/api/diagnosis/s-1/trace", "/api/chat/session/s-1/runs", "/api/cases", "/api/sessions")
        return {path: (await client.get(path)).body for path in paths}

    async def again(service: Process) -> dict[str, bytes]:
        async with client_of(service.url) as client:
            return await read(client)

    with service_process(tmp_path) as service:
        before = asyncio.run(ask(service))
        service.terminate()
        assert service.exit_status() == 0
    with service_process(tmp_path) as service:
        assert asyncio.run(again(service)) == before


def test_the_log_tells_of_runs_and_requests_one_object_a_line(tmp_path: Path) -> None:
    async def ask(service: Process) -> str:
        service.let_runs_end()
        async with client_of(service.url) as client:
            made = await client.ask("hello password=hunter2", "s-1")
            await client.get("/api/diagnosis/password=hunter2/trace")
            return str(made["runId"])

    with service_process(tmp_path) as service:
        run_id = asyncio.run(ask(service))
        service.terminate()
        assert service.exit_status() == 0
        lines = [json.loads(line) for line in service.log.splitlines()]
    told = [(line["event"], line.get("run_id")) for line in lines]
    assert ("run started", run_id) in told and ("run ended", run_id) in told
    assert [line["status"] for line in lines if line["event"] == "request"] == [200, 404]
    assert "hunter2" not in service.log
