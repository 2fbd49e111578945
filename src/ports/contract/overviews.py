"""The list of sessions: its order, its pages, what it finds and what it shows of each."""

from __future__ import annotations

import pytest
from attrs import evolve

from casenotes.core.errors import SessionNotFound
from casenotes.ports.contract.stage import (
    add_runs,
    add_sessions,
    at,
    chat_session,
    committed,
    on_fresh_ledger,
    only,
    started,
)
from casenotes.ports.ledger import Ledger

LITERAL_QUERIES = ("%", "_", "\\", "100%", "a_b", "*", "?", "[x]", "^", "'", '"', "\\%", "--")
"""Each has a meaning in some search language, and none here."""


async def found(ledger: Ledger, query: str | None, before: str | None = None, limit: int = 100) -> list[str]:
    """The ids of a page, in its order."""
    async with ledger.view() as view:
        page = await view.sessions.page(query=query, before=before, limit=limit)
    return [overview.session.session_id for overview in page]


class OverviewsContract:
    @on_fresh_ledger
    async def test_latest_active_session_comes_first(self, ledger: Ledger) -> None:
        for session_id, seconds in (("s-1", 5), ("s-2", 9), ("s-3", 1)):
            await add_sessions(ledger, session_id, seconds=seconds)
        async with committed(ledger) as work:
            await work.sessions.use(chat_session("s-3", seconds=7))
        assert await found(ledger, None) == ["s-2", "s-3", "s-1"]

    @on_fresh_ledger
    async def test_sessions_active_at_the_same_time_are_ordered_by_id(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "s-2", "s-3", "s-1")
        assert await found(ledger, None) == ["s-1", "s-2", "s-3"]

    @on_fresh_ledger
    async def test_session_page_holds_at_most_limit(self, ledger: Ledger) -> None:
        await add_sessions(ledger, *(f"s-{n}" for n in range(5)))
        assert await found(ledger, None, limit=2) == ["s-0", "s-1"]

    @on_fresh_ledger
    async def test_session_page_continues_after_the_session_named_before(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "s-1", "s-2", "s-3")
        assert await found(ledger, None, before="s-1") == ["s-2", "s-3"]
        assert await found(ledger, None, before="s-3") == []

    @on_fresh_ledger
    async def test_session_page_before_an_unknown_session_raises(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "s-1")
        with pytest.raises(SessionNotFound):
            await found(ledger, None, before="S-1")

    @on_fresh_ledger
    async def test_session_pages_give_each_session_once_though_many_share_a_time(
        self, ledger: Ledger
    ) -> None:
        ids = [f"s-{n:02}" for n in range(12)]
        for position, session_id in enumerate(reversed(ids)):
            await add_sessions(ledger, session_id, seconds=position % 3)
        seen: list[str] = []
        while page := await found(ledger, None, before=seen[-1] if seen else None, limit=5):
            seen.extend(page)
        assert sorted(seen) == ids
        assert seen == await found(ledger, None)

    @on_fresh_ledger
    async def test_session_pages_neither_lose_nor_repeat_while_sessions_are_added(
        self, ledger: Ledger
    ) -> None:
        ids = [f"s-{n}" for n in range(6)]
        await add_sessions(ledger, *ids)
        seen = await found(ledger, None, limit=2)
        for n in range(3):
            await add_sessions(ledger, f"late-{n}", seconds=100 + n)
            seen.extend(await found(ledger, None, before=seen[-1], limit=2))
        assert seen == ids

    @on_fresh_ledger
    async def test_session_query_finds_the_id(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "checkout-1", "payments-1")
        assert await found(ledger, "kout") == ["checkout-1"]
        assert await found(ledger, "nothing") == []

    @on_fresh_ledger
    async def test_session_query_finds_the_question_of_any_run(self, ledger: Ledger) -> None:
        await add_runs(
            ledger,
            started("r-1", "s-1", query="why is the pool empty", seconds=1),
            started("r-2", "s-1", query="and now", seconds=2),
            started("r-3", "s-2", query="disk full", seconds=3),
        )
        assert await found(ledger, "pool") == ["s-1"]
        assert await found(ledger, "now") == ["s-1"]

    @on_fresh_ledger
    async def test_session_query_sets_ascii_case_aside(self, ledger: Ledger) -> None:
        await add_runs(ledger, started("r-1", "Checkout", query="Why So Slow"))
        await add_sessions(ledger, "other")
        for query in ("checkout", "CHECKOUT", "so slow", "SO SLOW"):
            assert await found(ledger, query) == ["Checkout"]

    @on_fresh_ledger
    async def test_session_query_has_no_special_character(self, ledger: Ledger) -> None:
        questions = [f"x{query}y" for query in LITERAL_QUERIES] + ["xay 100 aab x"]
        await add_runs(ledger, *(started(f"r{n:02}", f"s{n:02}", query=q) for n, q in enumerate(questions)))
        for query in LITERAL_QUERIES:
            expected = [f"s{n:02}" for n, question in enumerate(questions) if query in question]
            assert await found(ledger, query) == expected, query

    @on_fresh_ledger
    async def test_session_query_goes_on_over_pages(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "a-1", "b-1", "a-2", "b-2", "a-3")
        assert await found(ledger, "a-", before="a-1", limit=1) == ["a-2"]
        assert await found(ledger, "a-", before="a-2", limit=9) == ["a-3"]

    @on_fresh_ledger
    async def test_overview_carries_run_count_and_latest_run(self, ledger: Ledger) -> None:
        await add_runs(
            ledger,
            started("r-c", "s-1", query="first", seconds=5),
            started("r-b", "s-1", query="second, at the same time", seconds=5),
            started("r-a", "s-1", query="earlier, but stored later", seconds=4),
            started("r-d", "s-2", query="another's", seconds=9),
        )
        async with ledger.view() as view:
            page = await view.sessions.page(query="s-1", before=None, limit=9)
        overview = only(page)
        assert overview.session.session_id == "s-1"
        assert overview.run_count == 3
        assert (overview.last_run_id, overview.last_query) == ("r-b", "second, at the same time")

    @on_fresh_ledger
    async def test_query_narrows_the_list_and_not_the_overview(self, ledger: Ledger) -> None:
        await add_runs(
            ledger, started("r-1", query="needle", seconds=1), started("r-2", query="hay", seconds=2)
        )
        async with ledger.view() as view:
            overview = only(await view.sessions.page(query="needle", before=None, limit=9))
        assert (overview.run_count, overview.last_run_id, overview.last_query) == (2, "r-2", "hay")

    @on_fresh_ledger
    async def test_overview_of_a_session_without_runs_is_empty(self, ledger: Ledger) -> None:
        session = evolve(chat_session("s"), message_pair_count=4, expires_at=at(60))
        async with committed(ledger) as work:
            await work.sessions.ensure(session)
        async with ledger.view() as view:
            overview = only(await view.sessions.page(query=None, before=None, limit=9))
        assert overview.session == session
        assert (overview.run_count, overview.last_run_id, overview.last_query) == (0, None, None)
