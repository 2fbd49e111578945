from __future__ import annotations

import re
from urllib.parse import quote

from support.http import Reply
from support.scripted import Scripted, playing, usual
from support.service import Backend, Running

from casenotes.ports.agent import Answered


def next_of(reply: Reply) -> str | None:
    link = reply.headers.get("Link")
    if link is None:
        return None
    found = re.fullmatch(r'<(/[^>]*)>; rel="next"', link)
    assert found is not None, link
    return found.group(1)


async def walk(here: Running, path: str | None) -> list[list[dict[str, object]]]:
    pages = []
    while path is not None:
        reply = await here.client.get(path)
        assert reply.status == 200
        pages.append(reply.data)
        path = next_of(reply)
    return pages


def test_pages_of_runs_are_linked_to_the_last(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = [(await here.client.ask(f"q{n}", "s-1"))["runId"] for n in range(6)]
        pages = await walk(here, "/api/chat/session/s-1/runs?limit=2")
        assert [[row["runId"] for row in page] for page in pages] == [made[5:3:-1], made[3:1:-1], made[1::-1]]
        assert next_of(await here.client.runs("s-1", "?limit=6")) is None

    backend.run(scenario)


def test_a_page_neither_loses_nor_repeats_a_run_while_runs_are_added(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = [(await here.client.ask(f"q{n}", "s-1"))["runId"] for n in range(4)]
        first = await here.client.runs("s-1", "?limit=2")
        await here.client.ask("late", "s-1")
        rest = await walk(here, next_of(first))
        seen = [row["runId"] for row in first.data] + [row["runId"] for page in rest for row in page]
        assert seen == made[::-1]

    backend.run(scenario)


def test_the_next_page_of_a_session_with_a_hard_id_can_be_fetched(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        session_id = "détail:a+b=c@~\N{CJK UNIFIED IDEOGRAPH-4E2D}"
        for n in range(3):
            await here.client.ask(f"q{n}", session_id)
        path = f"/api/chat/session/{quote(session_id, safe='')}/runs?limit=1"
        assert [page[0]["query"] for page in await walk(here, path)] == ["q2", "q1", "q0"]

    backend.run(scenario)


def test_sessions_are_listed_latest_active_first_with_their_last_run(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        for session_id, question in (("s-a", "disk full"), ("s-b", "50% slow"), ("s-a", "disk again")):
            last = await here.client.ask(question, session_id)
        (page,) = await walk(here, "/api/sessions")
        assert [row["sessionId"] for row in page] == ["s-a", "s-b"]
        assert (page[0]["runCount"], page[0]["lastRunId"], page[0]["lastQuery"]) == (
            2,
            last["runId"],
            "disk again",
        )
        assert [len(one) for one in await walk(here, "/api/sessions?limit=1")] == [1, 1]
        for query, found in (
            ("disk", ["s-a"]),
            ("50%25", ["s-b"]),
            ("%25", ["s-b"]),
            ("S-B", ["s-b"]),
            ("_", []),
        ):
            rows = (await here.client.get(f"/api/sessions?query={query}")).data
            assert [row["sessionId"] for row in rows] == found, query
        assert next_of(await here.client.get("/api/sessions?query=disk&limit=1")) is None
        assert (await here.client.get("/api/sessions?before=s-none")).status == 404

    backend.run(scenario)


def test_cases_are_listed_newest_first_and_searched(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        for n in range(3):
            await here.client.ask(f"question {n}", f"s-{n}")
            await here.client.rate(f"s-{n}")
        pages = await walk(here, "/api/cases?limit=2")
        assert [[row["query"] for row in page] for page in pages] == [
            ["question 2", "question 1"],
            ["question 0"],
        ]
        found = (await here.client.get("/api/cases?query=question%201")).data
        assert [row["sessionId"] for row in found] == ["s-1"] and found[0]["source"] == "AUTO"
        assert (await here.client.get("/api/cases?before=x")).status == 400

    backend.run(scenario)


def test_a_preview_is_short_and_on_one_line(backend: Backend) -> None:
    answer = "first\n\n  second\t" + "e\N{COMBINING ACUTE ACCENT}" * 300

    async def scenario(here: Running) -> None:
        await here.client.ask("x", "s-1")
        (row,) = (await here.client.runs("s-1")).data
        preview = row["answerPreview"]
        assert preview.startswith("first second e") and len(preview) <= 200 and preview.endswith("…")
        assert preview[-2] != "e"

    backend.run(scenario, Scripted(playing(Answered(answer))))


def test_an_empty_ledger_has_empty_lists(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        assert (await here.client.get("/api/sessions")).data == []
        assert (await here.client.get("/api/cases")).data == []
        assert (await here.client.runs("s-1")).status == 404

    backend.run(scenario, Scripted(usual))
