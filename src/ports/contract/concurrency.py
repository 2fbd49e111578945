"""Many at once: nothing is lost, nothing is doubled, and nobody fails who did nothing wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from attrs import evolve

from casenotes.core.errors import InvalidTransition, RunAlreadyExists
from casenotes.core.model import DiagnosisRun, Feedback, RunMetrics
from casenotes.ports.contract.journal import write_both
from casenotes.ports.contract.stage import (
    add_run,
    add_runs,
    all_at_once,
    answered,
    at,
    case_of,
    chat_session,
    committed,
    end,
    end_run,
    on_fresh_ledger,
    only,
    put_cases,
    read_run,
    read_session,
    started,
    useful,
)
from casenotes.ports.ledger import Ledger, UnitOfWork

Lock: TypeAlias = Callable[[UnitOfWork], Awaitable[DiagnosisRun | None]]
A_WHILE = 0.05
"""Seconds that others are given to do what they must not."""


class ConcurrencyContract:
    @on_fresh_ledger
    async def test_fifty_that_ensure_one_session_at_once_make_one_row(self, ledger: Ledger) -> None:
        async def ensure(n: int) -> None:
            async with committed(ledger) as work:
                await work.sessions.ensure(evolve(chat_session(), message_pair_count=n))

        await all_at_once(ensure(n) for n in range(50))
        async with ledger.view() as view:
            assert len(await view.sessions.page(query=None, before=None, limit=99)) == 1

    @on_fresh_ledger
    async def test_fifty_that_use_one_session_at_once_make_one_row_and_none_is_lost(
        self, ledger: Ledger
    ) -> None:
        async def use(n: int) -> None:
            async with committed(ledger) as work:
                await work.sessions.use(chat_session(seconds=n))

        await all_at_once(use((7 * n) % 50) for n in range(50))
        async with ledger.view() as view:
            overview = only(await view.sessions.page(query=None, before=None, limit=99))
        assert overview.session.last_active_at == at(49)

    @on_fresh_ledger
    async def test_of_answered_runs_that_end_at_once_each_counts_a_message_pair(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, *(started(f"r-{n}") for n in range(30)))
        await all_at_once(end_run(ledger, answered(run, seconds=n)) for n, run in enumerate(runs))
        session = await read_session(ledger, "s")
        assert (session.message_pair_count, session.last_active_at) == (30, at(29))

    @on_fresh_ledger
    async def test_runs_added_at_once_are_all_there_with_ids_of_their_own(self, ledger: Ledger) -> None:
        added = await all_at_once(add_run(ledger, started(f"r-{n}", f"s-{n % 3}")) for n in range(30))
        assert len({run.id for run in added}) == 30
        async with ledger.view() as view:
            for run in added:
                assert await view.runs.get(run.session_id, run.run_id) == run

    @on_fresh_ledger
    async def test_of_many_that_add_one_run_id_at_once_one_does(self, ledger: Ledger) -> None:
        outcomes = await asyncio.gather(
            *(add_run(ledger, started("r", query=f"question {n}")) for n in range(10)), return_exceptions=True
        )
        winner = only(outcome for outcome in outcomes if isinstance(outcome, DiagnosisRun))
        assert [type(o) for o in outcomes if o is not winner] == [RunAlreadyExists] * 9
        assert await read_run(ledger, "s", "r") == winner

    @on_fresh_ledger
    async def test_of_two_that_end_a_run_at_once_exactly_one_does(self, ledger: Ledger) -> None:
        for n in range(5):
            running = await add_run(ledger, started(f"r-{n}"))
            endings = [answered(running), running.fail("interrupted", at(6), RunMetrics(0, 0))]
            outcomes = await asyncio.gather(
                *(end_run(ledger, ending) for ending in endings), return_exceptions=True
            )
            winner = only(outcome for outcome in outcomes if isinstance(outcome, DiagnosisRun))
            loser = only(outcome for outcome in outcomes if isinstance(outcome, BaseException))
            assert isinstance(loser, InvalidTransition)
            assert await read_run(ledger, "s", f"r-{n}") == winner

    @on_fresh_ledger
    async def test_steps_that_race_with_the_end_are_counted_or_refused(self, ledger: Ledger) -> None:
        running = await add_run(ledger, started())

        async def step(sequence: int) -> None:
            async with committed(ledger) as work:
                await work.journal.add_step(running.step(sequence, "executor", at(1)))

        async def end_it() -> None:
            async with committed(ledger) as work:
                await work.runs.lock_to_end("s", "r")
                steps, tools = await work.journal.entries("s", "r")
                await end(work, running.succeed("a", at(2), RunMetrics(len(steps), len(tools))))

        scenes = [step(n) for n in range(8)]
        scenes.insert(4, end_it())
        outcomes = await asyncio.gather(*scenes, return_exceptions=True)
        refused = [outcome for outcome in outcomes if outcome is not None]
        assert all(isinstance(outcome, InvalidTransition) for outcome in refused), refused
        async with ledger.view() as view:
            stored, steps = await view.runs.get("s", "r"), await view.journal.steps("s", "r")
        assert stored is not None
        assert stored.step_count == len(steps) == 8 - len(refused)

    @on_fresh_ledger
    async def test_one_sequence_written_by_two_at_once_is_written_once(self, ledger: Ledger) -> None:
        running = await add_run(ledger, started())

        async def step(name: str) -> str:
            async with committed(ledger) as work:
                await work.journal.add_step(running.step(1, name, at(1)))
            return name

        outcomes = await asyncio.gather(step("one"), step("two"), return_exceptions=True)
        winner = only(outcome for outcome in outcomes if isinstance(outcome, str))
        loser = only(outcome for outcome in outcomes if not isinstance(outcome, str))
        assert isinstance(loser, ValueError)
        async with ledger.view() as view:
            assert [s.agent_name for s in await view.journal.steps("s", "r")] == [winner]

    @on_fresh_ledger
    async def test_runs_recorded_at_once_do_not_mix(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, *(started(f"r-{n}", f"s-{n % 2}") for n in range(6)))

        async def record(run: DiagnosisRun) -> None:
            for sequence in range(1, 6):
                async with committed(ledger) as work:
                    await write_both(work, run, sequence)

        await all_at_once(record(run) for run in runs)
        async with ledger.view() as view:
            for run in runs:
                steps = await view.journal.steps(run.session_id, run.run_id)
                assert [(s.sequence, s.output) for s in steps] == [(n, run.run_id) for n in range(1, 6)]

    @on_fresh_ledger
    async def test_cases_put_at_once_for_one_run_are_one_case(self, ledger: Ledger) -> None:
        stored = await all_at_once(put_cases(ledger, case_of("r", answer=f"a-{n}")) for n in range(20))
        assert len({case.id for [case] in stored}) == 1
        async with ledger.view() as view:
            case = only(await view.cases.page(query=None, before=None, limit=99))
        assert case in [one for [one] in stored]

    @on_fresh_ledger
    async def test_fifty_feedbacks_at_once_leave_one_of_them_whole(self, ledger: Ledger) -> None:
        await add_run(ledger, started())
        words = [Feedback("useful" if n % 2 else "not_useful", f"comment {n}", at(n)) for n in range(50)]

        async def rate(word: Feedback) -> None:
            async with committed(ledger) as work:
                await work.runs.set_feedback("s", "r", word)

        await all_at_once(rate(word) for word in words)
        run = await read_run(ledger, "s", "r")
        assert run.feedback is not None
        assert Feedback(run.feedback, run.feedback_comment, run.feedback_at) in words

    @on_fresh_ledger
    async def test_locked_run_is_kept_unchanged_by_others_until_the_work_ends(self, ledger: Ledger) -> None:
        async def lock(work: UnitOfWork) -> DiagnosisRun | None:
            return await work.runs.lock("s", "r")

        await self._hold_while_another_writes(ledger, lock)

    @on_fresh_ledger
    async def test_run_locked_to_end_is_kept_unchanged_by_others_until_the_work_ends(
        self, ledger: Ledger
    ) -> None:
        async def lock_to_end(work: UnitOfWork) -> DiagnosisRun | None:
            locked = await work.runs.lock_to_end("s", "r")
            return None if locked is None else locked[0]

        await self._hold_while_another_writes(ledger, lock_to_end)

    @on_fresh_ledger
    async def test_locked_latest_run_is_kept_unchanged_by_others_until_the_work_ends(
        self, ledger: Ledger
    ) -> None:
        async def lock_latest(work: UnitOfWork) -> DiagnosisRun | None:
            return await work.runs.lock_latest("s")

        await self._hold_while_another_writes(ledger, lock_latest)

    async def _hold_while_another_writes(self, ledger: Ledger, lock: Lock) -> None:
        before = await add_run(ledger, started())
        locked = asyncio.Event()
        order: list[str] = []

        async def hold() -> None:
            async with ledger.work() as work:
                assert await lock(work) == before
                locked.set()
                await asyncio.sleep(A_WHILE)
                assert await work.runs.get("s", "r") == before
                await work.runs.set_feedback("s", "r", Feedback("not_useful", "the holder's", at(20)))
                order.append("holder")
                await work.commit()

        async def intrude() -> None:
            await locked.wait()
            async with committed(ledger) as work:
                await work.runs.set_feedback("s", "r", useful("the other's", seconds=30))
            order.append("other")

        await all_at_once([hold(), intrude()])
        assert order == ["holder", "other"]
        assert await read_run(ledger, "s", "r") == before.rated(useful("the other's", seconds=30))

    @on_fresh_ledger
    async def test_read_and_write_under_lock_loses_nothing(self, ledger: Ledger) -> None:
        await add_run(ledger, started())

        async def append(n: int) -> None:
            async with committed(ledger) as work:
                run = await work.runs.lock_latest("s")
                assert run is not None
                words = [*(run.feedback_comment or "").split(), str(n)]
                await asyncio.sleep(0)
                await work.runs.set_feedback("s", "r", useful(" ".join(words)))

        await all_at_once(append(n) for n in range(15))
        comment = (await read_run(ledger, "s", "r")).feedback_comment or ""
        assert sorted(map(int, comment.split())) == list(range(15))

    @on_fresh_ledger
    async def test_failure_of_one_does_not_fail_another(self, ledger: Ledger) -> None:
        running = await add_run(ledger, started("taken"))

        async def good(n: int) -> None:
            await add_run(ledger, started(f"r-{n}"))

        async def bad() -> None:
            await add_run(ledger, started("taken", "t"))

        outcomes = await asyncio.gather(
            *(scene for n in range(10) for scene in (good(n), bad())), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes[1::2]] == [RunAlreadyExists] * 10
        assert outcomes[::2] == [None] * 10
        async with ledger.view() as view:
            assert len(await view.runs.page("s", before=None, limit=99)) == 11
            assert list(await view.runs.page("t", before=None, limit=99)) == []
            assert await view.runs.get("s", "taken") == running

    @on_fresh_ledger
    async def test_views_and_works_at_once_all_get_their_turn(self, ledger: Ledger) -> None:
        await add_run(ledger, started())

        async def look() -> None:
            async with ledger.view() as view:
                run = await view.runs.latest("s")
                await asyncio.sleep(0)
                assert await view.runs.latest("s") == run

        async def write(n: int) -> None:
            await add_run(ledger, started(f"r-{n}", seconds=n))

        await all_at_once(scene for n in range(25) for scene in (look(), write(n)))
