"""The list of a session's runs: newest first, in pages, as summaries."""

from __future__ import annotations

import pytest
from attrs import evolve

from casenotes.core.errors import RunNotFound
from casenotes.core.rules import answer_preview
from casenotes.core.views import RunSummary
from casenotes.ports.contract.runs import full_run
from casenotes.ports.contract.stage import add_run, add_runs, at, on_fresh_ledger, only, started
from casenotes.ports.ledger import Ledger


async def listed(ledger: Ledger, session_id: str, before: str | None = None, limit: int = 100) -> list[str]:
    """The run ids of a page, in its order."""
    async with ledger.view() as view:
        page = await view.runs.page(session_id, before=before, limit=limit)
    return [summary.run_id for summary in page]


class RunPagesContract:
    @on_fresh_ledger
    async def test_run_page_is_newest_first_and_equal_times_in_reverse_insertion_order(
        self, ledger: Ledger
    ) -> None:
        await add_runs(
            ledger,
            started("r-2", seconds=5),
            started("r-1", seconds=5),
            started("r-4", seconds=1),
            started("r-3", seconds=5),
            started("other", "t", seconds=5),
        )
        assert await listed(ledger, "s") == ["r-3", "r-1", "r-2", "r-4"]

    @on_fresh_ledger
    async def test_run_page_of_an_unknown_session_is_empty(self, ledger: Ledger) -> None:
        await add_run(ledger, started("r", "s"))
        assert await listed(ledger, "t") == []

    @on_fresh_ledger
    async def test_run_page_holds_at_most_limit(self, ledger: Ledger) -> None:
        await add_runs(ledger, *(started(f"r-{n}", seconds=n) for n in range(5)))
        assert await listed(ledger, "s", limit=2) == ["r-4", "r-3"]

    @on_fresh_ledger
    async def test_run_pages_give_each_run_once_though_all_share_a_time(self, ledger: Ledger) -> None:
        await add_runs(ledger, *(started(f"r-{n}") for n in range(7)))
        seen: list[str] = []
        while page := await listed(ledger, "s", before=seen[-1] if seen else None, limit=3):
            seen.extend(page)
        assert seen == [f"r-{n}" for n in reversed(range(7))]

    @on_fresh_ledger
    async def test_run_pages_neither_lose_nor_repeat_while_runs_are_added(self, ledger: Ledger) -> None:
        await add_runs(ledger, *(started(f"r-{n}", seconds=n // 2) for n in range(8)))
        at_the_start = await listed(ledger, "s")
        seen = await listed(ledger, "s", limit=2)
        for n in range(3):
            await add_runs(ledger, started(f"late-{n}", seconds=100), started(f"twin-{n}", seconds=3))
            seen.extend(await listed(ledger, "s", before=seen[-1], limit=2))
        assert seen == at_the_start

    @pytest.mark.parametrize("before", ["unknown", "foreign", "R-1"])
    @on_fresh_ledger
    async def test_run_page_before_a_run_that_is_not_the_sessions_raises(
        self, ledger: Ledger, before: str
    ) -> None:
        await add_runs(ledger, started("r-1", "s"), started("foreign", "t"))
        with pytest.raises(RunNotFound):
            await listed(ledger, "s", before=before)

    @on_fresh_ledger
    async def test_run_summary_says_what_the_run_says(self, ledger: Ledger) -> None:
        await add_run(ledger, full_run())
        async with ledger.view() as view:
            summary = only(await view.runs.page("s", before=None, limit=9))
        assert summary == RunSummary(
            run_id="r",
            session_id="s",
            query="why",
            status="SUCCESS",
            agent_flow="AN_OLDER_WORD",
            answer_preview="because",
            step_count=3,
            tool_call_count=4,
            created_at=at(0),
            updated_at=at(8),
        )

    @pytest.mark.parametrize(
        "answer",
        [None, "", " two\n\n words ", "word " * 200, "\U0001f680" * 300, "e\N{COMBINING ACUTE ACCENT}" * 250],
        ids=["none", "empty", "spaced", "long", "wide", "combining"],
    )
    @on_fresh_ledger
    async def test_run_summary_previews_the_answer_by_the_rule(
        self, ledger: Ledger, answer: str | None
    ) -> None:
        await add_run(ledger, evolve(full_run(), answer=answer))
        async with ledger.view() as view:
            summary = only(await view.runs.page("s", before=None, limit=9))
        assert summary.answer_preview == answer_preview(answer)
