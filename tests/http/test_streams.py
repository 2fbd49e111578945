from __future__ import annotations

import asyncio

import pytest
from support.scripted import ALERT, Gate, Scripted, playing, raising, telling, usual
from support.service import Backend, Running
from support.sse import EventReader, answer_in

from casenotes.entrypoints.http import streaming
from casenotes.ports.agent import Chunk, Progress, ToolCalled

HARD = "a\r\nb\rc\n\nd\u2028e\u2029f\u0085g\nevent: done\ndata: {}\n\n: ping\nid: 7\n\N{SNOWMAN}\U0001f600é\n"
STREAMS = ("/api/chat_stream", "/api/ai_ops")


def asking(path: str) -> dict[str, object]:
    return (
        {"sessionId": "s-1", "question": "what is firing"} if path != "/api/ai_ops" else {"sessionId": "s-1"}
    )


@pytest.mark.parametrize("path", STREAMS)
def test_a_stream_tells_ids_then_content_then_one_end(backend: Backend, path: str) -> None:
    async def scenario(here: Running) -> None:
        async with here.client.streaming(path, asking(path)) as (response, events):
            told = [event async for event in events]
        assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert response.headers["Cache-Control"] == "no-cache"
        assert response.headers["X-Accel-Buffering"] == "no"
        assert "Content-Encoding" not in response.headers
        kinds = [event.type for event in told]
        assert kinds[0] == "metadata" and kinds[-1] == "done" and set(kinds[1:-1]) <= {"content", "progress"}
        trace = (await here.client.trace("s-1", told[0].payload["runId"])).data
        assert told[0].payload == {"sessionId": "s-1", "runId": trace["runId"]}
        assert answer_in(told) == trace["answer"]

    backend.run(scenario)


@pytest.mark.parametrize("path", STREAMS)
def test_hard_text_arrives_exactly_as_it_is_stored(backend: Backend, path: str) -> None:
    async def scenario(here: Running) -> None:
        events = await here.client.stream(path, asking(path))
        assert answer_in(events) == HARD
        assert (await here.client.trace("s-1")).data["answer"] == HARD

    for pieces in (1, 5, 10_000):
        backend.run(scenario, Scripted(telling(HARD, pieces_of=pieces)))


def test_no_byte_of_a_stream_can_be_taken_for_the_end_of_a_line(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        async with here.client.streaming("/api/ai_ops") as (response, _):
            raw = (await response.read()).decode()
        for line in raw.split("\n"):
            assert line.splitlines() in ([line], [])

    memory.run(scenario, Scripted(telling(HARD)))


@pytest.mark.parametrize("path", STREAMS)
def test_a_secret_in_pieces_is_not_sent(backend: Backend, path: str) -> None:
    async def scenario(here: Running) -> None:
        events = await here.client.stream(path, asking(path))
        assert answer_in(events) == "login with password=[redacted:password]\nthen look"

    backend.run(scenario, Scripted(telling("login with password=hunter2\nthen look", pieces_of=3)))


@pytest.mark.parametrize("path", STREAMS)
def test_a_failed_run_ends_its_stream_with_a_safe_error(backend: Backend, path: str) -> None:
    async def scenario(here: Running) -> None:
        events = await here.client.stream(path, asking(path))
        assert [event.type for event in events] == ["metadata", "content", "error"]
        assert events[-1].payload == "an internal fault ended the run"
        assert (await here.client.trace("s-1")).data["run"]["status"] == "FAILED"

    backend.run(scenario, Scripted(raising(ValueError("password=x"), Chunk("half\n"))))


@pytest.mark.parametrize("path", STREAMS)
def test_ids_and_progress_are_told_at_once(backend: Backend, path: str) -> None:
    async def scenario(here: Running) -> None:
        async with here.client.streaming(path, asking(path)) as (_, events):
            assert (await anext(events)).type == "metadata"
            assert (await anext(events)).payload == "looking"
            assert not gate.opened.is_set()
            gate.opened.set()
            assert [event.type async for event in events][-1] == "done"

    gate = Gate(Progress("looking"))
    backend.run(scenario, Scripted(gate))


@pytest.mark.parametrize("path", STREAMS)
def test_a_dropped_stream_does_not_fail_the_run(backend: Backend, path: str) -> None:
    async def scenario(here: Running) -> None:
        async with here.client.streaming(path, asking(path)) as (response, events):
            run_id = (await anext(events)).payload["runId"]
            response.close()
        gate.opened.set()
        await here.quiet()
        assert (await here.client.trace("s-1", run_id)).data["run"]["status"] == "SUCCESS"

    gate = Gate()
    backend.run(scenario, Scripted(gate))


def test_a_stalled_reader_does_not_hold_the_run(memory: Backend) -> None:
    """Far more than the socket takes is told to a client that reads nothing; the run ends all the same."""

    async def scenario(here: Running) -> None:
        async with here.client.streaming("/api/ai_ops", {"sessionId": "s-1"}) as (response, _):
            await here.quiet()
            assert (await here.client.trace("s-1")).data["run"]["status"] == "SUCCESS"
            response.close()

    memory.run(scenario, Scripted(playing(*[Chunk("x" * 65536 + "\n")] * 150)))


def test_silence_is_filled_with_comments(memory: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(here: Running) -> None:
        reader = EventReader()
        async with here.client.streaming("/api/ai_ops") as (response, _):
            async for piece in response.content.iter_any():
                reader.feed(piece)
                if reader.comments >= 3:
                    gate.opened.set()
        assert reader.comments >= 3

    assert streaming.PING_SECONDS <= 15
    monkeypatch.setattr(streaming, "PING_SECONDS", 0.02)
    gate = Gate()
    memory.run(scenario, Scripted(gate))


def test_aiops_takes_no_body_an_empty_one_or_alerts(backend: Backend) -> None:
    asked = Scripted(usual)

    async def scenario(here: Running) -> None:
        sessions = set()
        for body in (None, {}, {"sessionId": None, "alerts": None}, {"alerts": [dict(ALERT)]}):
            events = await here.client.stream("/api/ai_ops", body)
            assert events[-1].type == "done"
            sessions.add(events[0].payload["sessionId"])
        assert len(sessions) == 4 and all(one.startswith("aiops-") for one in sessions)
        assert [enquiry.alerts for enquiry in asked.enquiries] == [None, None, None, (ALERT,)]

    backend.run(scenario, asked)


def test_aiops_adds_no_turn_to_a_conversation(backend: Backend) -> None:
    asked = Scripted(usual)

    async def scenario(here: Running) -> None:
        await here.client.ask("one", "s-1")
        await here.client.stream("/api/ai_ops", {"sessionId": "s-1"})
        await here.client.ask("two", "s-1")
        assert (await here.client.get("/api/chat/session/s-1")).data["messagePairCount"] == 2
        assert asked.enquiries[1].conversation == ()
        assert [pair.question for pair in asked.enquiries[2].conversation] == ["one"]

    backend.run(scenario, asked)


def test_erasing_a_session_ends_its_stream(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        async with here.client.streaming("/api/ai_ops", {"sessionId": "s-1"}) as (_, events):
            await anext(events)
            await gate.reached.wait()
            erased = await here.client.delete("/api/chat/session/s-1")
            assert erased.data["runs"] == 1 and erased.data["toolInvocations"] == 1
            rest = [event async for event in events]
            assert [rest[-1].type, rest[-1].payload] == ["error", "the session was erased"]
        assert (await here.client.trace("s-1")).status == 404

    gate = Gate(ToolCalled("logs.search"))
    backend.run(scenario, Scripted(gate))


def test_a_proxy_that_speaks_http_1_0_gets_the_stream_unframed_and_its_end(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        port = int(here.client.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /api/ai_ops HTTP/1.0\r\nHost: localhost\r\n\r\n")
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
        assert b"chunked" not in head.lower() and b"keep-alive" not in head.lower()
        events = EventReader().feed(body)
        assert [events[0].type, events[-1].type] == ["metadata", "done"]

    memory.run(scenario)
