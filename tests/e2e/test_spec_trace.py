"""The trace API: the scenarios of the spec, one test each."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from support.service import Backend, Running

PARTS = {
    "sessionId",
    "runId",
    "session",
    "run",
    "agentSteps",
    "toolInvocations",
    "selfEvaluation",
    "answer",
    "feedback",
}


def stored(here: Running) -> list[str]:
    """Everything in the database, as SQL."""
    assert here.database is not None
    with closing(sqlite3.connect(here.database)) as connection:
        return list(connection.iterdump())


def test_trace_without_run_id_resolves_latest_run(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("one", "s-1")
        latest = await here.client.ask("two", "s-1")
        await here.client.ask("elsewhere", "s-2")
        trace = (await here.client.trace("s-1")).data
        assert trace["runId"] == latest["runId"] and trace["run"]["query"] == "two"

    backend.run(scenario)


def test_latest_run_is_by_created_at_then_id(sqlite: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = [(await here.client.ask(question, "s-1"))["runId"] for question in ("a", "b", "c")]
        assert here.database is not None
        with closing(sqlite3.connect(here.database)) as connection, connection:
            connection.execute(
                "update diagnosis_run set created_at = (select created_at from diagnosis_run where run_id = ?)"
                " where run_id in (?, ?)",
                (made[1], made[0], made[2]),
            )
        assert (await here.client.trace("s-1")).data["runId"] == made[2]
        with closing(sqlite3.connect(here.database)) as connection, connection:
            connection.execute(
                "update diagnosis_run set created_at = '2099-01-01 00:00:00.000000' where run_id = ?",
                (made[0],),
            )
        assert (await here.client.trace("s-1")).data["runId"] == made[0]
        assert [row["runId"] for row in (await here.client.runs("s-1")).data] == [made[0], made[2], made[1]]

    sqlite.run(scenario)


def test_trace_with_run_id_returns_exact_run(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        first = await here.client.ask("one", "s-1")
        await here.client.ask("why two", "s-1")
        await here.client.rate("s-1", "not_useful", runId=first["runId"], comment="of the first")
        trace = (await here.client.trace("s-1", first["runId"])).data
        assert trace.keys() == PARTS and trace["runId"] == first["runId"]
        assert trace["session"]["source"] == "chat_session" and trace["session"]["messagePairCount"] == 2
        assert trace["run"]["query"] == "one" and trace["answer"] == first["answer"]
        assert [step["input"] for step in trace["agentSteps"]] == ["one"]
        assert [tool["arguments"] for tool in trace["toolInvocations"]] == [{"q": "one"}]
        assert trace["selfEvaluation"]["evidence"]["toolCalls"] == 1
        assert trace["feedback"]["comment"] == "of the first"
        assert (await here.client.trace("s-1")).data["feedback"] is None

    backend.run(scenario)


def test_trace_rejects_run_from_another_session(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("mine", "s-1")
        theirs = await here.client.ask("theirs-is-secret", "s-2")
        reply = await here.client.trace("s-1", theirs["runId"])
        assert reply.status == 404 and reply.data is None
        assert b"secret" not in reply.body and b"s-2" not in reply.body

    backend.run(scenario)


def test_existing_session_latest_trace_is_returned(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("why is checkout slow", "s-1")
        reply = await here.client.trace("s-1")
        assert reply.status == 200 and reply.message == "success" and reply.data.keys() == PARTS
        assert reply.data["runId"] == made["runId"] and reply.data["answer"] == made["answer"]
        for part in ("agentSteps", "toolInvocations"):
            sequences = [row["sequence"] for row in reply.data[part]]
            assert sequences == list(range(1, len(sequences) + 1)) and sequences

    backend.run(scenario)


def test_existing_session_exact_trace_is_returned(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = [await here.client.ask(question, "s-1") for question in ("one", "two", "three")]
        for data in made:
            trace = (await here.client.trace("s-1", data["runId"])).data
            assert trace["runId"] == data["runId"] and trace["answer"] == data["answer"]

    backend.run(scenario)


def test_missing_session_returns_not_found(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        for run_id in (None, "run-1"):
            reply = await here.client.trace("s-none", run_id)
            assert reply.status == 404
            assert reply.json == {"code": 404, "message": "session not found: s-none", "data": None}

    backend.run(scenario)


def test_trace_query_does_not_change_persisted_state(sqlite: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("why", "s-1")
        await here.client.rate("s-1")
        await here.seed_history("s-old")
        before = stored(here)
        for path in ("/api/diagnosis/s-1/trace", "/api/diagnosis/s-old/trace", "/api/diagnosis/s-none/trace"):
            await here.client.get(path)
        assert stored(here) == before

    sqlite.run(scenario)


def test_exact_trace_query_does_not_change_persisted_state(sqlite: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("why", "s-1")
        before = stored(here)
        assert (await here.client.trace("s-1", made["runId"])).status == 200
        assert (await here.client.trace("s-1", "run-none")).status == 404
        await here.client.runs("s-1")
        assert stored(here) == before

    sqlite.run(scenario)


def test_asking_for_a_trace_twice_gives_the_same(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("why", "s-1")
        first = await here.client.trace("s-1", made["runId"])
        assert (await here.client.trace("s-1", made["runId"])).body == first.body

    backend.run(scenario)
