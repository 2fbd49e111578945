"""A secret that comes in by any way is in no store: what was never written cannot be found in a backup."""

from __future__ import annotations

import asyncio

from redis import Redis
from support.postgres import rows
from support.scripted import ALERT, Scripted, raising
from support.service import Backend, Running

from casenotes.adapters.memory import MemoryLedger
from casenotes.core.orchestration import NodeEntered
from casenotes.core.words import AgentFlow, StepStatus
from casenotes.ports.agent import Answered, Chunk, Enquiry, GraphMoved, Progress, StepTaken, ToolCalled

SECRET = "hunter2-hunter2"
SAID = f"password={SECRET}"


class Leaky(RuntimeError):
    """Its words are a secret."""


async def leaking(enquiry: Enquiry) -> object:
    """Says the secret wherever a diagnostician can say anything, and with ``boom`` fails of it."""
    if enquiry.flow is AgentFlow.STATE_GRAPH:
        yield GraphMoved(NodeEntered(enquiry.run_id, "planner"))
    yield Progress(SAID)
    yield StepTaken(SAID, step_type=SAID, model=SAID, input=SAID, output=SAID, error_message=SAID)
    yield ToolCalled(
        SAID,
        {"password": SECRET, "args": [SAID, {"dsn": f"postgres://u:{SECRET}@db/x"}]},
        {"access_token": SECRET, "text": SAID},
        status=StepStatus.FAILED,
        error_message=SAID,
    )
    yield ToolCalled("t", {}, f"{'x' * 65_530} {SAID}")
    if "boom" in enquiry.question:
        raise Leaky(SAID)
    yield Chunk(f"{SAID}\n")
    yield Answered(self_evaluation={"note": SAID, "password": SECRET})


async def stored(here: Running) -> bytes:
    """All bytes that the service has written anywhere, as far as they can be got at."""
    if (
        here.database is not None
    ):  # with the files beside it: what is not in the file yet, and the conversations
        return b"".join(path.read_bytes() for path in here.database.parent.iterdir() if path.is_file())
    if not here.has_rows:
        assert isinstance(here.service.ledger, MemoryLedger)
        return repr(here.service.ledger._state).encode()
    url, found = here.settings.database_url, b""
    names = await rows(url, "select tablename from pg_tables where schemaname = 'public'")
    for name in names:
        table = f'"{name["tablename"]}"'
        found += repr(await rows(url, f"select row_to_json(it)::text as row from {table} as it")).encode()
    with Redis.from_url(here.settings.context_url) as redis:
        for key in redis.keys("*"):
            found += repr(redis.lrange(key, 0, -1)).encode()
    return found


def test_no_store_holds_a_secret_whichever_way_it_came(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        client = here.client
        for number, flow in enumerate(("chat", "graph")):
            await client.ask(f"why does {SAID} not work", f"s-{number}", flow=flow)
            await client.ask(f"boom {SAID}", f"s-{number}", flow=flow)
            await client.rate(f"s-{number}", comment=SAID)
        first = (await client.runs("s-0")).data[-1]["runId"]
        assert (await client.rate("s-0", runId=first, comment=SAID)).data["caseId"] is not None
        labels = {**dict(ALERT), "annotations": {"summary": SAID, "token": SECRET}}
        events = await client.stream("/api/ai_ops", {"sessionId": "s-9", "alerts": [labels]})
        assert SECRET not in repr(events)
        headers = {"Idempotency-Key": "k-1"}
        await client.post("/api/chat", {"question": SAID, "sessionId": "s-0"}, headers=headers)
        everything = await stored(here)
        assert SECRET.encode() not in everything
        assert b"[redacted:" in everything

    backend.run(scenario, Scripted(leaking))  # type: ignore[arg-type]


def test_the_words_of_an_exception_are_in_no_answer_and_no_row(backend: Backend) -> None:
    words = "an exception's own words"

    async def scenario(here: Running) -> None:
        data = await here.client.ask("q", "s-1", flow="graph")
        assert data["success"] is False and words not in repr(data)
        events = await here.client.stream("/api/ai_ops", {"sessionId": "s-1"})
        assert events[-1].type == "error" and words not in repr(events)
        for path in ("/api/diagnosis/s-1/trace", "/api/chat/session/s-1/runs", "/api/sessions", "/metrics"):
            assert words.encode() not in (await here.client.get(path)).body
        assert words.encode() not in await stored(here)

    backend.run(scenario, Scripted(raising(ValueError(words), Chunk("half"))))


def test_a_trace_of_a_graph_carries_moves_only_also_at_rest(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("PROMPT-OF-THE-USER", "s-1", flow="graph")
        (row,) = here.rows("select orchestration_trace from diagnosis_run") if here.has_rows else ({},)
        shown = (await here.client.trace("s-1")).data["run"]["orchestrationTrace"]
        for text in (str(row), repr(shown)):
            for private in ("PROMPT-OF-THE-USER", "SECRET-REASONING", "RAW-TOOL-OUTPUT", "exhausted [T1]"):
                assert private not in text

    backend.run(scenario)


def test_another_sessions_run_is_confirmed_by_nothing_where_runs_arrive(backend: Backend) -> None:
    """Feedback for a run of another session and for one that does not exist take the same way, at once too."""

    async def scenario(here: Running) -> None:
        theirs = (await here.client.ask("theirs", "s-2"))["runId"]
        nobodys = "run-" + "0" * (len(theirs) - 4)
        await here.client.ask("mine", "s-1")
        replies = await asyncio.gather(
            *(here.client.rate("s-1", runId=one) for one in (theirs, nobodys) * 5),
            *(here.client.trace("s-1", one) for one in (theirs, nobodys) * 5),
        )
        for kind in (replies[:10], replies[10:]):
            told = {
                (one.status, one.body.replace(theirs.encode(), b"?").replace(nobodys.encode(), b"?"))
                for one in kind
            }
            assert len(told) == 1 and next(iter(told))[0] == 404
        assert (await here.client.trace("s-2", theirs)).data["feedback"] is None

    backend.run(scenario)
