"""Many at once, some of whom go away: nobody waits for ever, nothing stays open, nothing is told too early or twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random

import pytest
from attrs import define
from support.postgres import rows
from support.scripted import Gate, Scripted, usual
from support.service import Backend, Running
from support.statements import lent_by
from unit.service.scene import play, scene

from casenotes.adapters.memory import MemoryLedger
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.words import RunStatus
from casenotes.ports.agent import AgentEvent, Enquiry, Progress
from casenotes.ports.ledger import LedgerView, UnitOfWork
from casenotes.ports.through_work import ThroughWork

MORE_THAN_CONNECTIONS = 40
OPEN = (
    "select 1 from pg_stat_activity"
    " where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()"
)


def taken(here: Running) -> int:
    """How many connections of the ledger's pools somebody holds."""
    ledger, count = here.service.ledger, 0
    if isinstance(ledger, SqlLedger):
        count = lent_by(ledger)
    return count


async def nothing_is_open(here: Running) -> None:
    """Wait until no connection is held, and see that the server has no transaction of ours open."""
    async with asyncio.timeout(20):
        while taken(here):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        if here.database is None and here.has_rows:
            while await rows(here.settings.database_url, OPEN):  # noqa: ASYNC110 - nor here
                await asyncio.sleep(0.01)


def test_more_streams_and_waits_than_connections_all_make_progress(backend: Backend) -> None:
    reached, opened = asyncio.Semaphore(0), asyncio.Event()

    async def waiting(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        """As an agent that waits for its model."""
        yield Progress("waiting")
        reached.release()
        await opened.wait()
        async for event in usual(enquiry):
            yield event

    async def scenario(here: Running) -> None:
        async def listen(number: int) -> str:
            body = {"sessionId": f"s-{number}", "question": "q"}
            return (await here.client.stream("/api/chat_stream", body))[-1].type

        async def ask(number: int) -> str:
            return "done" if (await here.client.ask("q", f"s-{number}"))["success"] else "error"

        waits = [
            asyncio.create_task((listen if number % 2 else ask)(number))
            for number in range(MORE_THAN_CONNECTIONS)
        ]
        for _ in waits:
            await asyncio.wait_for(reached.acquire(), 30)
        await nothing_is_open(here)
        traces = await asyncio.gather(*(here.client.trace(f"s-{n}") for n in range(MORE_THAN_CONNECTIONS)))
        assert {trace.data["run"]["status"] for trace in traces} == {"RUNNING"}
        opened.set()
        assert set(await asyncio.gather(*waits)) == {"done"}

    backend.run(scenario, Scripted(waiting))


def requests(number: int) -> tuple[str, str, object]:
    """A request of each kind in turn."""
    session_id = f"s-{number % 5}"
    chosen: list[tuple[str, str, object]] = [
        ("POST", "/api/chat", {"sessionId": session_id, "question": f"q{number}"}),
        ("POST", "/api/chat_stream", {"sessionId": session_id, "question": f"q{number}"}),
        ("GET", f"/api/diagnosis/{session_id}/trace", None),
        ("POST", "/api/feedback", {"sessionId": session_id, "feedback": "useful"}),
        ("GET", f"/api/chat/session/{session_id}/runs", None),
        ("GET", "/api/sessions?query=q", None),
        ("POST", "/api/ai_ops", {"sessionId": session_id}),
        ("GET", "/api/cases?query=q", None),
    ]
    return chosen[number % len(chosen)]


async def sent_and_dropped(here: Running, number: int, chance: Random) -> None:
    """Send a request on a connection of its own, and be gone: at once, in a moment, or after the first bytes."""
    method, path, body = requests(number)
    raw = b"" if body is None else json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(here.client.url.rpartition(":")[2]))
    writer.write(
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(raw)}\r\n\r\n".encode()
        + raw
    )
    match number % 3:
        case 0:
            await asyncio.sleep(chance.random() / 100)
        case 1:
            await reader.read(1)
        case _:
            await writer.drain()
    writer.transport.abort()


def test_two_hundred_dropped_requests_leave_nothing_open_and_no_run_running(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        for number in range(5):
            await here.client.ask("first", f"s-{number}")
        chance = Random(7)
        for at in range(0, 200, 25):
            await asyncio.gather(*(sent_and_dropped(here, n, chance) for n in range(at, at + 25)))
        async with asyncio.timeout(60):
            while here.service.executions.running() or len(asyncio.all_tasks()) > 40:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await nothing_is_open(here)
        for number in range(5):
            listed = (await here.client.runs(f"s-{number}", "?limit=500")).data
            assert {run["status"] for run in listed} == {"SUCCESS"}
            session = (await here.client.get(f"/api/chat/session/s-{number}")).data
            answered = [run for run in listed if run["agentFlow"] != "AI_OPS"]
            assert session["messagePairCount"] == len(answered)

    backend.run(scenario)


@pytest.mark.parametrize("path", ["/api/chat_stream", "/api/ai_ops"])
def test_what_is_told_done_is_in_the_database_already(backend: Backend, path: str) -> None:
    async def scenario(here: Running) -> None:
        async with here.client.streaming(path, {"sessionId": "s-1", "question": "q"}) as (_, events):
            kinds = []
            async for event in events:
                kinds.append(event.type)
                if event.type == "metadata" and here.has_rows:
                    (row,) = here.rows("select run_id from diagnosis_run where session_id = ?", "s-1")
                    assert row["run_id"] == event.payload["runId"]
                if event.type == "done" and here.has_rows:
                    (row,) = here.rows("select status, answer, step_count from diagnosis_run")
                    assert row["status"] == "SUCCESS" and row["answer"] and row["step_count"] == 1
            assert kinds[-1] == "done"
        assert (await here.client.trace("s-1")).data["run"]["status"] == "SUCCESS"

    backend.run(scenario)


def test_feedback_without_a_run_id_is_on_the_run_it_names_while_runs_arrive(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("q", "s-1")
        said: dict[str, set[str]] = {}

        async def rate(number: int) -> None:
            await asyncio.sleep(number / 500)
            receipt = (await here.client.rate("s-1", comment=f"c-{number}")).data
            assert receipt["fallbackToLatestRun"] is True
            said.setdefault(receipt["runId"], set()).add(f"c-{number}")

        await asyncio.gather(
            *(rate(n) for n in range(40)), *(here.client.ask(f"q{n}", "s-1") for n in range(40))
        )
        for run in (await here.client.runs("s-1")).data:
            trace = (await here.client.trace("s-1", run["runId"])).data
            if run["runId"] in said:
                assert trace["feedback"]["comment"] in said[run["runId"]]
            else:
                assert trace["feedback"] is None

    backend.run(scenario)


@define
class Unheard(ThroughWork):
    """A memory ledger whose commits, from the one that is named to the next, are done and not acknowledged."""

    lost: set[int]
    sound: MemoryLedger
    count: int = -1

    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        self.count += 1
        mine = self.count
        async with self.sound.work() as work:
            yield work
        if mine in self.lost:
            raise LedgerUnavailable("the connection was cut")

    def view(self) -> AbstractAsyncContextManager[LedgerView]:
        return self.sound.view()

    async def check(self) -> None:
        await self.sound.check()

    async def close(self) -> None:
        await self.sound.close()


def test_an_end_whose_acknowledgement_was_lost_counts_once_and_is_told_as_it_is_stored() -> None:
    """0 is the start, 1 the step, 2 the tool call, 3 the end."""

    async def act() -> None:
        s = scene(ledger=Unheard({3}, MemoryLedger()))
        told = await s.ask()
        trace = await s.service.reading.trace("s-1")
        assert trace.run is not None and trace.run.status is RunStatus.SUCCESS
        assert (told.status, told.answer) == (trace.run.status, trace.run.answer)
        assert trace.session.message_pair_count == 1 == len(await s.context.recall("s-1"))
        assert (trace.run.step_count, trace.run.tool_call_count) == (1, 1)

    play(act)


@pytest.mark.parametrize("fact", [1, 2])
def test_a_fact_whose_acknowledgement_was_lost_is_not_written_twice(fact: int) -> None:
    async def act() -> None:
        s = scene(ledger=Unheard({fact}, MemoryLedger()))
        assert (await s.ask()).status is RunStatus.FAILED
        trace = await s.service.reading.trace("s-1")
        assert trace.run is not None and trace.run.status is RunStatus.FAILED
        assert (trace.run.step_count, trace.run.tool_call_count) == (1, fact - 1)
        assert (len(trace.agent_steps), len(trace.tool_invocations)) == (1, fact - 1)

    play(act)


def test_a_stream_that_is_left_holds_nothing_while_its_run_goes_on(backend: Backend) -> None:
    gate = Gate(Progress("waiting"))

    async def scenario(here: Running) -> None:
        async with here.client.streaming("/api/ai_ops", {"sessionId": "s-1"}) as (response, events):
            await anext(events)
            response.close()
        await gate.reached.wait()
        await nothing_is_open(here)
        gate.opened.set()
        await here.quiet()
        assert (await here.client.trace("s-1")).data["run"]["status"] == "SUCCESS"

    backend.run(scenario, Scripted(gate))
