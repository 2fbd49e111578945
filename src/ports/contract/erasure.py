"""Erasing a session: all of it, nothing else, and no number is given twice."""

from __future__ import annotations

from attrs import evolve

from casenotes.core.seal import session_digest
from casenotes.core.views import Erasure, Tombstone
from casenotes.ports.contract.journal import write_both
from casenotes.ports.contract.stage import (
    add_run,
    add_runs,
    add_sessions,
    answered,
    at,
    case_of,
    chat_session,
    committed,
    end_run,
    holder_of,
    key_named,
    on_fresh_ledger,
    only,
    picture,
    put_cases,
    read_session,
    started,
)
from casenotes.ports.ledger import Ledger


async def erase(ledger: Ledger, session_id: str = "s") -> Erasure | None:
    async with committed(ledger) as work:
        return await work.erase(session_id, at=at())


async def furnish(ledger: Ledger, session_id: str = "s") -> None:
    """A session with two runs, three steps, three tool calls, two cases (one withdrawn) and two keys."""
    [one, two] = await add_runs(
        ledger, started(f"{session_id}-1", session_id), started(f"{session_id}-2", session_id)
    )
    async with committed(ledger) as work:
        await write_both(work, one, 1)
        await write_both(work, two, 1)
        await write_both(work, two, 2)
        await work.cases.put(case_of(one.run_id, session_id=session_id))
        await work.cases.put(case_of(two.run_id, session_id=session_id))
        await work.cases.withdraw(two.run_id, at=at(9))
        for n in (1, 2):
            await work.keys.claim(key_named(f"k-{session_id}-{n}", session_id=session_id))
    await end_run(ledger, answered(one))


class ErasureContract:
    @on_fresh_ledger
    async def test_erase_leaves_nothing_of_the_session(self, ledger: Ledger) -> None:
        empty = await picture(ledger, "s")
        await furnish(ledger)
        await erase(ledger)
        assert await picture(ledger, "s") == empty
        async with ledger.view() as view:
            for run_id in ("s-1", "s-2"):
                assert await view.runs.get("s", run_id) is None
                assert list(await view.journal.steps("s", run_id)) == []
                assert list(await view.journal.tools("s", run_id)) == []
                assert await view.cases.of_run(run_id) is None
            assert list(await view.runs.expired(now=at(10_000), limit=9)) == []
        assert await holder_of(ledger, "k-s-1") is None
        assert await holder_of(ledger, "k-s-2") is None

    @on_fresh_ledger
    async def test_erase_tells_how_many_rows_it_removed(self, ledger: Ledger) -> None:
        await furnish(ledger, "s")
        await furnish(ledger, "t")
        assert await erase(ledger) == Erasure("s", runs=2, agent_steps=3, tool_invocations=3, cases=2)

    @on_fresh_ledger
    async def test_erasing_an_unknown_session_is_none_and_changes_nothing(self, ledger: Ledger) -> None:
        await furnish(ledger, "s")
        before = await picture(ledger, "s")
        for unknown in ("S", "s ", "%", "_", "t", ""):
            assert await erase(ledger, unknown) is None
        assert await picture(ledger, "s") == before

    @on_fresh_ledger
    async def test_session_is_erased_whichever_part_of_it_is_there(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "only-session")
        async with committed(ledger) as work:
            await work.runs.add(started("r", "only-run"))
            await work.keys.claim(key_named("k", session_id="only-key"))
            await work.cases.put(case_of("r-gone", session_id="only-case"))
        for session_id, runs, cases in (
            ("only-session", 0, 0),
            ("only-run", 1, 0),
            ("only-key", 0, 0),
            ("only-case", 0, 1),
        ):
            assert await erase(ledger, session_id) == Erasure(session_id, runs, 0, 0, cases)
            assert await erase(ledger, session_id) is None, f"{session_id} was still there"

    @on_fresh_ledger
    async def test_erase_leaves_other_sessions_untouched(self, ledger: Ledger) -> None:
        others = ("t", "S", "s ", "ss", "s-1", "%")
        for session_id in others:
            await furnish(ledger, session_id)
        before = [(await picture(ledger, other))[:3] for other in others]
        await furnish(ledger, "s")
        await erase(ledger, "s")
        assert [(await picture(ledger, other))[:3] for other in others] == before
        for other in others:
            assert await holder_of(ledger, f"k-{other}-1") == key_named(f"k-{other}-1", session_id=other)

    @on_fresh_ledger
    async def test_erased_session_id_may_be_used_anew(self, ledger: Ledger) -> None:
        await furnish(ledger)
        await erase(ledger)
        run = await add_run(ledger, started("s-1", query="the first of a new life"))
        assert await read_session(ledger, "s") == chat_session("s")
        async with ledger.view() as view:
            assert await view.runs.latest("s") == run
            assert list(await view.journal.steps("s", "s-1")) == []
            assert await view.cases.of_run("s-1") is None

    @on_fresh_ledger
    async def test_numbers_are_not_reused_after_the_newest_rows_were_erased(self, ledger: Ledger) -> None:
        await furnish(ledger, "t")
        run = only(await add_runs(ledger, started("r")))
        case = only(await put_cases(ledger, case_of("r")))
        await erase(ledger)
        again = only(await add_runs(ledger, started("r-2")))
        case_again = only(await put_cases(ledger, case_of("r-2")))
        assert (again.id or 0) > (run.id or 0) > 0, "a run's number was given twice"
        assert (case_again.id or 0) > (case.id or 0) > 0, "a case's number was given twice"

    @on_fresh_ledger
    async def test_numbers_are_not_reused_after_everything_was_erased(self, ledger: Ledger) -> None:
        run = only(await add_runs(ledger, started("r")))
        async with committed(ledger) as work:
            await write_both(work, run, 1)
        async with ledger.view() as view:
            step = only(await view.journal.steps("s", "r"))
        await erase(ledger)
        again = only(await add_runs(ledger, evolve(run, id=None)))
        async with committed(ledger) as work:
            await write_both(work, again, 1)
        async with ledger.view() as view:
            step_again = only(await view.journal.steps("s", "r"))
        assert (again.id or 0) > (run.id or 0) > 0
        assert (step_again.id or 0) > (step.id or 0) > 0

    @on_fresh_ledger
    async def test_latest_run_after_the_newest_session_was_erased_is_still_the_newest(
        self, ledger: Ledger
    ) -> None:
        await add_run(ledger, started("r-1", "s"))
        await add_run(ledger, started("r-2", "t"))
        await erase(ledger, "t")
        await add_run(ledger, started("r-0", "s"))
        async with ledger.view() as view:
            latest = await view.runs.latest("s")
        assert latest is not None
        assert latest.run_id == "r-0"

    @on_fresh_ledger
    async def test_erase_leaves_a_tombstone_that_counts_and_says_when(self, ledger: Ledger) -> None:
        await furnish(ledger)
        async with ledger.work() as work:
            head = await work.sessions.lock_chain("s")
        await erase(ledger)
        async with ledger.view() as view:
            tombstone = only(await view.sessions.tombstones("s"))
            assert list(await view.sessions.tombstones("t")) == []
        assert tombstone == Tombstone(
            session_digest=session_digest("s"),
            runs=2,
            agent_steps=3,
            tool_invocations=3,
            cases=2,
            ended_run_count=1,
            last_run_digest=head.digest,
            erased_at=at(),
        )

    @on_fresh_ledger
    async def test_nothing_erased_leaves_no_tombstone(self, ledger: Ledger) -> None:
        await erase(ledger, "unknown")
        async with ledger.view() as view:
            assert list(await view.sessions.tombstones("unknown")) == []

    @on_fresh_ledger
    async def test_session_used_anew_begins_a_new_chain(self, ledger: Ledger) -> None:
        for n in (1, 2):
            await end_run(ledger, answered(await add_run(ledger, started(f"r-{n}"))))
            async with ledger.work() as work:
                assert (await work.sessions.lock_chain("s")).count == 1
            await erase(ledger)
        async with ledger.view() as view:
            assert [tombstone.runs for tombstone in await view.sessions.tombstones("s")] == [1, 1]


class IdlenessContract:
    @on_fresh_ledger
    async def test_idle_sessions_are_those_last_active_before_the_longest_idle_first(
        self, ledger: Ledger
    ) -> None:
        for name, seconds in (("s-3", 3), ("s-1", 1), ("s-5", 5)):
            await add_sessions(ledger, name, seconds=seconds)
        async with ledger.view() as view:
            assert list(await view.sessions.idle(since=at(5), limit=9)) == ["s-1", "s-3"]
            assert list(await view.sessions.idle(since=at(5), limit=1)) == ["s-1"]
            assert list(await view.sessions.idle(since=at(1), limit=9)) == []

    @on_fresh_ledger
    async def test_session_with_a_running_run_is_not_idle(self, ledger: Ledger) -> None:
        running = await add_run(ledger, started())
        async with ledger.view() as view:
            assert list(await view.sessions.idle(since=at(99), limit=9)) == []
        await end_run(ledger, answered(running))
        async with ledger.view() as view:
            assert list(await view.sessions.idle(since=at(99), limit=9)) == ["s"]

    @on_fresh_ledger
    async def test_erase_of_what_is_not_idle_leaves_it_as_it_is(self, ledger: Ledger) -> None:
        await furnish(ledger)  # one of its runs is running
        await add_sessions(ledger, "t", seconds=10)
        before = await picture(ledger, "s"), await picture(ledger, "t")
        for session_id, since in (("s", at(99)), ("t", at(10)), ("unknown", at(99))):
            async with committed(ledger) as work:
                assert await work.erase(session_id, at=at(50), idle_since=since) is None
        assert (await picture(ledger, "s"), await picture(ledger, "t")) == before

    @on_fresh_ledger
    async def test_idle_session_is_erased_whole(self, ledger: Ledger) -> None:
        empty = await picture(ledger)
        await end_run(ledger, answered(await add_run(ledger, started())))
        async with committed(ledger) as work:
            erasure = await work.erase("s", at=at(50), idle_since=at(40))
        assert erasure is not None and erasure.runs == 1
        assert await picture(ledger) == empty
