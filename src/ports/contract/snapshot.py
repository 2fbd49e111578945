"""Views: one moment of the ledger, and no way to write."""

from __future__ import annotations

import pytest

from casenotes.core.errors import CasenotesError
from casenotes.ports.contract.journal import write_both
from casenotes.ports.contract.stage import (
    add_run,
    add_sessions,
    at,
    case_of,
    committed,
    end_run,
    on_fresh_ledger,
    only,
    put_cases,
    started,
)
from casenotes.ports.contract.stage import answered as ended
from casenotes.ports.contract.writes import LATER, WRITES, all_there_is, prepare
from casenotes.ports.ledger import Ledger, UnitOfWork

VIEWS = ("sessions", "runs", "journal", "cases", "history")


class SnapshotContract:
    @on_fresh_ledger
    async def test_view_does_not_see_what_others_commit_after_its_first_read(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started("r-1"))
        async with ledger.view() as view:
            assert await view.runs.latest("s") == run
            await add_run(ledger, started("r-2", seconds=9))
            await put_cases(ledger, case_of("r-1"))
            async with committed(ledger) as work:
                await write_both(work, run, 1)
            await end_run(ledger, ended(run))
            await add_sessions(ledger, "t")

            assert await view.runs.latest("s") == run
            assert await view.runs.get("s", "r-1") == run
            assert await view.runs.get("s", "r-2") is None
            assert [r.run_id for r in await view.runs.page("s", before=None, limit=9)] == ["r-1"]
            assert list(await view.journal.steps("s", "r-1")) == []
            assert list(await view.journal.tools("s", "r-1")) == []
            assert tuple(map(list, await view.journal.entries("s", "r-1"))) == ([], [])
            assert await view.cases.of_run("r-1") is None
            assert list(await view.cases.page(query=None, before=None, limit=9)) == []
            assert await view.sessions.get("t") is None
            overview = only(await view.sessions.page(query=None, before=None, limit=9))
            assert (overview.run_count, overview.last_run_id) == (1, "r-1")
        async with ledger.view() as view:
            assert await view.runs.get("s", "r-2") is not None, "the next view sees it"

    @on_fresh_ledger
    async def test_view_still_sees_what_others_erase_after_its_first_read(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        async with ledger.view() as view:
            assert await view.sessions.get("s") is not None
            async with committed(ledger) as work:
                await work.erase("s", at=at())
            assert await view.runs.get("s", "r") == run
        async with ledger.view() as view:
            assert await view.runs.get("s", "r") is None

    @on_fresh_ledger
    async def test_view_sees_what_was_committed_before_its_first_read(self, ledger: Ledger) -> None:
        async with ledger.view() as view:
            run = await add_run(ledger, started())
            assert await view.runs.get("s", "r") == run

    @on_fresh_ledger
    async def test_views_open_together_each_keep_their_own_moment(self, ledger: Ledger) -> None:
        async with ledger.view() as first:
            assert await first.runs.latest("s") is None
            one = await add_run(ledger, started("r-1"))
            async with ledger.view() as second:
                assert await second.runs.latest("s") == one
                await add_run(ledger, started("r-2", seconds=9))
                assert await second.runs.latest("s") == one
            assert await first.runs.latest("s") is None

    @on_fresh_ledger
    async def test_view_has_no_way_to_write(self, ledger: Ledger) -> None:
        await prepare(ledger)
        before = await all_there_is(ledger)
        for write in WRITES:
            with pytest.raises((AttributeError, CasenotesError)):
                async with ledger.view() as view:
                    work: UnitOfWork = view  # type: ignore[assignment]  # what the type forbids must fail too
                    await write.call(work, LATER)
            assert await all_there_is(ledger) == before, write.name

    @on_fresh_ledger
    async def test_view_has_neither_commit_nor_keys(self, ledger: Ledger) -> None:
        async with ledger.view() as view:
            for name in ("commit", "keys", "erase"):
                assert not hasattr(view, name)
            for name in VIEWS:
                assert hasattr(view, name)
