from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from support.http import JSON
from support.service import Backend, Running

ASKING = ("/api/chat", "/api/chat_stream", "/api/ai_ops", "/api/feedback", "/api/chat/clear")


async def no_run_was_made(here: Running) -> None:
    assert (await here.client.get("/api/sessions")).data == []


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"{", "must be JSON"),
        (b"not json", "must be JSON"),
        (b"null", "must be a JSON object"),
        (b"[]", "must be a JSON object"),
        (b'"text"', "must be a JSON object"),
        (b"7", "must be a JSON object"),
        (b'{"question": NaN}', "must be JSON"),
        (b'{"question": "x", "n": -Infinity}', "must be JSON"),
        (b'{"question": "x", "n": ' + b"9" * 5000 + b"}", "must be JSON"),
        (b'{"question": "\xff"}', "must be UTF-8"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "must not be nested deeper"),
        (b'{"a":' + b"[" * 64 + b"]" * 64 + b"}", "must not be nested deeper"),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(memory: Backend, raw: bytes, says: str) -> None:
    async def scenario(here: Running) -> None:
        for path in ASKING:
            reply = await here.client.send("POST", path, raw, headers={"Content-Type": JSON})
            assert reply.status == 400 and reply.message.startswith("body: ") and says in reply.message
        await no_run_was_made(here)

    memory.run(scenario)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "question"),
        ({"question": None}, "question"),
        ({"question": "  \n"}, "question"),
        ({"question": 7}, "question"),
        ({"question": ["x"]}, "question"),
        ({"question": "x" * 32_001}, "question"),
        ({"question": "x", "sessionId": 7}, "sessionId"),
        ({"question": "x", "sessionId": {}}, "sessionId"),
        ({"question": "x", "sessionId": "a b"}, "sessionId"),
        ({"question": "x", "sessionId": "a/b"}, "sessionId"),
        ({"question": "x", "sessionId": "..."}, "sessionId"),
        ({"question": "x", "sessionId": "x" * 129}, "sessionId"),
        ({"question": "x", "sessionId": "a\x00b"}, "sessionId"),
        ({"question": "x", "sessionId": "a\ud800b"}, "sessionId"),
        ({"question": "x", "flow": "fast"}, "flow"),
        ({"question": "x", "flow": 1}, "flow"),
    ],
)
def test_a_wrong_chat_request_is_refused_by_its_field_and_leaves_no_row(
    backend: Backend, body: dict[str, object], field: str
) -> None:
    async def scenario(here: Running) -> None:
        for path in ("/api/chat", "/api/chat_stream"):
            reply = await here.client.post(path, body)
            assert reply.status == 400 and reply.message.startswith(f"{field}: "), reply.body
        await no_run_was_made(here)

    backend.run(scenario)


@pytest.mark.parametrize("alerts", [{}, "x", 7, [7], [["x"]], [None]])
def test_alerts_that_are_no_list_of_objects_are_refused(memory: Backend, alerts: object) -> None:
    async def scenario(here: Running) -> None:
        reply = await here.client.post("/api/ai_ops", {"alerts": alerts})
        assert reply.status == 400 and reply.message.startswith("alerts: ")
        await no_run_was_made(here)

    memory.run(scenario)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"feedback": "useful"}, "sessionId"),
        ({"sessionId": " ", "feedback": "useful"}, "sessionId"),
        ({"sessionId": "s-1"}, "feedback"),
        ({"sessionId": "s-1", "feedback": "great"}, "feedback"),
        ({"sessionId": "s-1", "feedback": 1}, "feedback"),
        ({"sessionId": "s-1", "feedback": "useful", "runId": ""}, "runId"),
        ({"sessionId": "s-1", "feedback": "useful", "runId": " "}, "runId"),
        ({"sessionId": "s-1", "feedback": "useful", "runId": 7}, "runId"),
        ({"sessionId": "s-1", "feedback": "useful", "comment": 7}, "comment"),
    ],
)
def test_a_wrong_feedback_is_refused_by_its_field(
    memory: Backend, body: dict[str, object], field: str
) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("x", "s-1")
        reply = await here.client.post("/api/feedback", body)
        assert reply.status == 400 and reply.message.startswith(f"{field}: ")
        assert (await here.client.trace("s-1")).data["feedback"] is None

    memory.run(scenario)


@pytest.mark.parametrize("limit", ["0", "501", "-1", "x", "", "1.5", "9" * 40, "%D9%A1"])
def test_a_bad_limit_is_refused(memory: Backend, limit: str) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("x", "s-1")
        for path in ("/api/sessions", "/api/cases", "/api/chat/session/s-1/runs"):
            reply = await here.client.get(f"{path}?limit={limit}")
            assert reply.status == 400 and reply.message.startswith("limit: ")

    memory.run(scenario)


def test_a_blank_run_id_or_cursor_in_the_query_is_refused(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("x", "s-1")
        for path in ("/api/diagnosis/s-1/trace?runId=", "/api/diagnosis/s-1/trace?runId=%20"):
            reply = await here.client.get(path)
            assert reply.status == 400 and reply.message.startswith("runId: ")
        for path in ("/api/sessions", "/api/cases", "/api/chat/session/s-1/runs"):
            reply = await here.client.get(f"{path}?before=")
            assert reply.status == 400 and reply.message.startswith("before: ")

    memory.run(scenario)


def test_a_question_of_the_greatest_length_is_taken(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        assert (await here.client.ask("é" * 32_000, "s-1", flow="chat"))["success"] is True

    memory.run(scenario)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_refused(memory: Backend, chunked: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(large), 65536):
            yield large[start : start + 65536]

    async def scenario(here: Running) -> None:
        raw = pieces() if chunked else large
        reply = await here.client.send("POST", "/api/chat", raw, headers={"Content-Type": JSON})
        assert reply.status == 413
        fits = json.dumps({"question": "x", "sessionId": "s", "pad": ""}).encode()
        fits = fits[:-2] + b"p" * (1024 * 1024 - len(fits)) + fits[-2:]
        reply = await here.client.send("POST", "/api/chat", fits, headers={"Content-Type": JSON})
        assert reply.status == 200

    large = json.dumps({"question": "x", "pad": "p" * 1024 * 1024}).encode()
    memory.run(scenario)


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "application/json; charset=latin-1",
        "",
    ],
)
def test_what_is_not_said_to_be_json_is_refused(memory: Backend, content_type: str) -> None:
    async def scenario(here: Running) -> None:
        for path in ASKING:
            raw = b'{"question": "x"}'
            reply = await here.client.send("POST", path, raw, headers={"Content-Type": content_type})
            assert reply.status == 415
        await no_run_was_made(here)

    memory.run(scenario)


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=UTF-8"])
def test_json_by_any_spelling_of_its_type_is_taken(memory: Backend, content_type: str) -> None:
    async def scenario(here: Running) -> None:
        raw = b'{"question": "x"}'
        reply = await here.client.send("POST", "/api/chat", raw, headers={"Content-Type": content_type})
        assert reply.status == 200

    memory.run(scenario)


def test_text_that_no_database_holds_is_settled(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        raw = rb'{"sessionId": "s-1", "question": "a\u0000b\ud800c"}'
        reply = await here.client.send("POST", "/api/chat", raw, headers={"Content-Type": JSON})
        assert reply.status == 200
        assert (await here.client.trace("s-1")).data["run"]["query"] == "a\ufffdb\ufffdc"

    backend.run(scenario)
