from __future__ import annotations

from urllib.parse import quote

import pytest
from support.service import Backend, Running

NEW = [
    "a",
    "A",
    "s-1",
    "x" * 128,
    "a.b_c:d@e+f=g~h-i",
    "\N{CJK UNIFIED IDEOGRAPH-4E2D}\u0e33é",
    "1",
    "e\u0301",
]
OLD = [
    "a/b",
    "a%2Fb",
    "a%b",
    "100%",
    "a?b#c",
    "a b",
    " padded ",
    "x" * 500,
    "a\\b",
    "a;b&c=d",
    "\U0001f600",
]


@pytest.mark.parametrize("session_id", NEW)
def test_a_session_may_have_this_id(backend: Backend, session_id: str) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("q", session_id)
        assert made["sessionId"] == session_id
        trace = await here.client.trace(session_id, made["runId"])
        assert trace.data["sessionId"] == session_id and trace.data["runId"] == made["runId"]
        assert len((await here.client.runs(session_id)).data) == 1

    backend.run(scenario)


@pytest.mark.parametrize("session_id", OLD)
def test_a_stored_id_of_any_form_can_be_read_rated_and_erased(backend: Backend, session_id: str) -> None:
    encoded = quote(session_id, safe="")

    async def scenario(here: Running) -> None:
        await here.seed_session(session_id)
        for path in (
            f"/api/diagnosis/{encoded}/trace",
            f"/api/chat/session/{encoded}/runs",
            f"/api/chat/session/{encoded}",
        ):
            assert (await here.client.get(path)).status == 200, path
        assert (await here.client.trace(session_id)).data["sessionId"] == session_id
        assert (await here.client.ask("q", session_id))["sessionId"] == session_id
        assert (await here.client.rate(session_id)).data["sessionId"] == session_id
        assert (await here.client.delete(f"/api/chat/session/{encoded}")).data["sessionId"] == session_id
        assert (await here.client.trace(session_id)).status == 404

    backend.run(scenario)


def test_an_id_is_decoded_once(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.seed_session("a%2Fb")
        assert (await here.client.get("/api/chat/session/a%252Fb")).status == 200
        assert (await here.client.get("/api/chat/session/a%2Fb")).status == 404
        assert (await here.client.get("/api/chat/session/a%25252Fb")).status == 404

    backend.run(scenario)


def test_ids_differ_by_case_and_by_every_character(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        for session_id in ("abc", "ABC", "é", "e\u0301"):
            await here.client.ask(f"of {session_id}", session_id)
        for session_id in ("abc", "ABC", "é", "e\u0301"):
            (row,) = (await here.client.runs(session_id)).data
            assert row["query"] == f"of {session_id}"

    backend.run(scenario)


def test_an_id_that_no_store_can_hold_is_refused(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        for path in (
            "/api/chat/session/a%00b",
            "/api/diagnosis/a%00b/trace",
            "/api/diagnosis/s/trace?runId=a%00",
        ):
            assert (await here.client.get(path)).status == 400
        assert (await here.client.get("/api/chat/session/a%ED%A0%80b")).status in (400, 404)

    backend.run(scenario)
