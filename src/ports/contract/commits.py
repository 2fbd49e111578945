"""Shared commits: what arrives together may be made durable together, and each keeps an outcome of its own."""

from __future__ import annotations

import asyncio

import pytest
from attrs import evolve

from casenotes.core.errors import InvalidTransition, RunAlreadyExists, RunNotFound
from casenotes.core.model import AgentStep, DiagnosisRun, ToolInvocation
from casenotes.ports.contract.stage import (
    NAIVE,
    add_run,
    add_runs,
    all_at_once,
    answered,
    at,
    chat_session,
    end,
    end_run,
    on_fresh_ledger,
    picture,
    read_run,
    read_session,
    started,
)
from casenotes.ports.ledger import Body, Ledger, UnitOfWork


class Abandoned(Exception):
    """An error of the caller's own."""


def entries(run: DiagnosisRun, number: int) -> list[AgentStep | ToolInvocation]:
    """So many steps and tool calls of a run, each with a text and a value of its own."""
    steps = [run.step(n, "executor", at(n), output=f"{run.run_id} {n}") for n in range(1, number + 1)]
    tools = [
        run.tool_call(n, "logs.search", at(n), arguments={"n": n}, result={"of": run.run_id, "n": n})
        for n in range(1, number + 1)
    ]
    return [*steps, *tools]


class CommitsContract:
    @on_fresh_ledger
    async def test_recorded_entries_are_there_and_equal_when_record_returns(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        for entry in entries(run, 2):
            await ledger.record(entry)
            async with ledger.view() as view:
                steps, tools = await view.journal.steps("s", "r"), await view.journal.tools("s", "r")
            stored = steps[-1] if isinstance(entry, AgentStep) else tools[-1]
            assert _without_id(stored) == entry

    @on_fresh_ledger
    async def test_entries_of_many_runs_that_are_recorded_at_once_are_all_there(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, *(started(f"r-{n}", f"s-{n % 3}") for n in range(10)))
        await all_at_once(ledger.record(entry) for run in runs for entry in entries(run, 5))
        for run in runs:
            async with ledger.view() as view:
                steps = await view.journal.steps(run.session_id, run.run_id)
                tools = await view.journal.tools(run.session_id, run.run_id)
            assert [*map(_without_id, steps), *map(_without_id, tools)] == entries(run, 5)

    @on_fresh_ledger
    async def test_numbers_and_texts_of_entries_that_are_recorded_at_once_come_back_equal(
        self, ledger: Ledger
    ) -> None:
        run = await add_run(ledger, started())
        odd = [
            2**200,
            -(2**63) - 1,
            0.1,
            1e-7,
            -2.5e15,
            9007199254740993,
            "\x1b\u2028\ufdd0\U0001f600",
            "\\u0000",
        ]
        tools = [
            run.tool_call(n, "x", at(n), arguments={"it": value}, result=[value])
            for n, value in enumerate(odd, 1)
        ]
        await all_at_once(ledger.record(tool) for tool in tools)
        async with ledger.view() as view:
            stored = await view.journal.tools("s", "r")
        assert [_without_id(tool) for tool in stored] == tools
        kinds = [[type(value) for value in tool.result] for tool in stored if isinstance(tool.result, list)]
        assert kinds == [[type(value)] for value in odd]

    @on_fresh_ledger
    async def test_entry_that_is_refused_fails_alone_among_those_recorded_with_it(
        self, ledger: Ledger
    ) -> None:
        sound, ended = await add_runs(ledger, started("r-sound"), started("r-ended"))
        await end_run(ledger, answered(ended))
        taken = sound.step(1, "planner", at(1))
        await ledger.record(taken)
        wrong = [taken, ended.step(1, "planner", at(1)), started("r-unknown").step(1, "planner", at(1))]
        right = [sound.step(n, "executor", at(1)) for n in range(2, 9)]
        outcomes = await asyncio.gather(
            *(ledger.record(entry) for pair in zip(wrong, right, strict=False) for entry in pair),
            *(ledger.record(entry) for entry in right[len(wrong) :]),
            return_exceptions=True,
        )
        refused = [outcome for outcome in outcomes if outcome is not None]
        assert [type(outcome) for outcome in refused] == [ValueError, InvalidTransition, RunNotFound]
        async with ledger.view() as view:
            assert [step.sequence for step in await view.journal.steps("s", "r-sound")] == list(range(1, 9))
            assert list(await view.journal.steps("s", "r-ended")) == []

    @on_fresh_ledger
    async def test_entry_that_names_a_session_that_is_not_its_runs_fails_alone(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, *(started(f"r-{n}", f"s-{n}") for n in range(8)))
        steps = [run.step(1, "planner", at(1)) for run in runs]
        foreign = [evolve(step, session_id="s-0") for step in steps[4:]]
        outcomes = await asyncio.gather(
            *(ledger.record(step) for step in (*steps[:4], *foreign, *steps[4:])), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes if outcome is not None] == [RunNotFound] * 4
        for run, step in zip(runs, steps, strict=True):
            async with ledger.view() as view:
                stored = await view.journal.steps(run.session_id, run.run_id)
            assert [_without_id(one) for one in stored] == [step]

    @on_fresh_ledger
    async def test_one_sequence_recorded_by_several_at_once_is_stored_once(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        outcomes = await asyncio.gather(
            *(ledger.record(run.step(1, name, at(1))) for name in "abc"), return_exceptions=True
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == [
            "NoneType",
            "ValueError",
            "ValueError",
        ]
        async with ledger.view() as view:
            [step] = await view.journal.steps("s", "r")
        assert step.agent_name == "abc"[outcomes.index(None)]

    @on_fresh_ledger
    async def test_run_that_starts_is_there_with_its_session_when_start_returns(self, ledger: Ledger) -> None:
        session, run = chat_session(seconds=1), started(seconds=1)
        stored = await ledger.start(session, run)
        assert stored.id is not None and evolve(stored, id=None) == run
        assert await read_run(ledger, "s", "r") == stored
        assert await read_session(ledger, "s") == session

    @on_fresh_ledger
    async def test_run_that_starts_uses_a_session_that_is_there(self, ledger: Ledger) -> None:
        first, _ = await add_runs(ledger, started("r-1"), started("r-2"))
        await end_run(ledger, answered(first))
        before = await read_session(ledger, "s")
        later = evolve(chat_session(seconds=60), expires_at=at(600))
        await ledger.start(later, started("r-3", seconds=60))
        assert await read_session(ledger, "s") == evolve(before, last_active_at=at(60), expires_at=at(600))
        await ledger.start(evolve(chat_session(seconds=2), expires_at=at(500)), started("r-4", seconds=2))
        assert await read_session(ledger, "s") == evolve(before, last_active_at=at(60), expires_at=at(500))

    @on_fresh_ledger
    async def test_run_that_is_there_is_not_started_again_and_no_session_is_touched(
        self, ledger: Ledger
    ) -> None:
        await add_run(ledger, started("r", "s-1"))
        before = await picture(ledger)
        for session_id in ("s-1", "s-2"):
            with pytest.raises(RunAlreadyExists):
                await ledger.start(chat_session(session_id, 60), started("r", session_id, seconds=60))
        assert await picture(ledger) == before

    @on_fresh_ledger
    async def test_of_many_that_start_one_run_at_once_exactly_one_does(self, ledger: Ledger) -> None:
        outcomes = await asyncio.gather(
            *(ledger.start(chat_session(), started(query=f"why {n}")) for n in range(8)),
            return_exceptions=True,
        )
        stored = [outcome for outcome in outcomes if isinstance(outcome, DiagnosisRun)]
        assert [type(outcome) for outcome in outcomes].count(RunAlreadyExists) == 7
        assert stored == [await read_run(ledger, "s", "r")]

    @on_fresh_ledger
    async def test_run_that_cannot_start_fails_alone_among_those_that_start_with_it(
        self, ledger: Ledger
    ) -> None:
        await add_run(ledger, started("r-taken", "s-taken"))
        runs = [started(f"r-{n}", f"s-{n % 4}") for n in range(12)]
        taken, naive = started("r-taken", "s-other"), evolve(started("r-naive"), created_at=NAIVE)
        outcomes = await asyncio.gather(
            *(
                ledger.start(chat_session(run.session_id), run)
                for run in (*runs[:6], taken, naive, *runs[6:])
            ),
            return_exceptions=True,
        )
        refused = [type(outcome) for outcome in outcomes if not isinstance(outcome, DiagnosisRun)]
        assert refused == [RunAlreadyExists, ValueError]
        for outcome in outcomes:
            if isinstance(outcome, DiagnosisRun):
                assert await read_run(ledger, outcome.session_id, outcome.run_id) == outcome
        async with ledger.view() as view:
            assert await view.sessions.get("s-other") is None

    @on_fresh_ledger
    async def test_start_with_a_naive_time_is_refused_and_writes_nothing(self, ledger: Ledger) -> None:
        before = await picture(ledger)
        with pytest.raises(ValueError):
            await ledger.start(chat_session(), evolve(started(), created_at=NAIVE))
        with pytest.raises(ValueError):
            await ledger.start(evolve(chat_session(), last_active_at=NAIVE), started())
        assert await picture(ledger) == before

    @on_fresh_ledger
    async def test_runs_that_start_at_once_are_all_there_in_one_session_with_one_order(
        self, ledger: Ledger
    ) -> None:
        runs = [started(f"r-{n}") for n in range(12)]
        stored = await asyncio.gather(
            *(ledger.start(chat_session(seconds=n), run) for n, run in enumerate(runs))
        )
        assert len({run.id for run in stored}) == 12
        newest = max(stored, key=lambda run: run.id or 0)
        async with ledger.view() as view:
            assert await view.runs.latest("s") == newest
        assert (await read_session(ledger, "s")).last_active_at == at(11)

    @on_fresh_ledger
    async def test_transact_commits_what_its_body_did_and_returns_what_it_returned(
        self, ledger: Ledger
    ) -> None:
        async def body(work: UnitOfWork) -> DiagnosisRun:
            await work.sessions.ensure(chat_session())
            return await work.runs.add(started())

        stored = await ledger.transact(body)
        assert await read_run(ledger, "s", "r") == stored

    @on_fresh_ledger
    async def test_body_that_raises_writes_nothing_and_its_error_is_its_callers(self, ledger: Ledger) -> None:
        async def body(work: UnitOfWork) -> None:
            await work.sessions.ensure(chat_session())
            await work.runs.add(started())
            raise Abandoned

        before = await picture(ledger)
        with pytest.raises(Abandoned):
            await ledger.transact(body)
        assert await picture(ledger) == before

    @on_fresh_ledger
    async def test_bodies_at_once_are_each_whole_or_undone(self, ledger: Ledger) -> None:
        await add_run(ledger, started("r-taken", "s-taken"))
        ending = await add_runs(ledger, *(started(f"r-ending-{n}", "s-taken") for n in range(12)))

        async def begin(number: int) -> None:
            async def body(work: UnitOfWork) -> None:
                await work.sessions.ensure(chat_session(f"s-{number}"))
                await end(work, answered(ending[number]))
                await work.runs.add(started("r-taken" if number % 3 == 0 else f"r-{number}", f"s-{number}"))

            await ledger.transact(body)

        outcomes = await asyncio.gather(*(begin(n) for n in range(12)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes if outcome is not None] == [RunAlreadyExists] * 4
        for number in range(12):
            async with ledger.view() as view:
                session = await view.sessions.get(f"s-{number}")
                run = await view.runs.get(f"s-{number}", f"r-{number}")
            assert (session is None, run is None) == (number % 3 == 0,) * 2
        assert (await read_session(ledger, "s-taken")).message_pair_count == 8

    @on_fresh_ledger
    async def test_caller_that_is_cancelled_takes_nobody_with_it(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        tasks = [asyncio.create_task(ledger.record(run.step(n, "executor", at(1)))) for n in range(1, 13)]
        await asyncio.sleep(0)
        for task in tasks[::4]:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        stored = {n for n, outcome in enumerate(outcomes, 1) if outcome is None}
        assert len(stored) >= 9
        assert {type(outcome) for outcome in outcomes} <= {type(None), asyncio.CancelledError}
        await ledger.record(run.tool_call(1, "logs.search", at(2)))
        async with ledger.view() as view:
            assert stored <= {step.sequence for step in await view.journal.steps("s", "r")}

    @on_fresh_ledger
    async def test_run_that_starts_while_its_session_is_erased_has_a_session(self, ledger: Ledger) -> None:
        await self._start_while_erased(ledger, None)

    @on_fresh_ledger
    async def test_session_that_is_used_while_it_is_erased_is_there_with_its_run(
        self, ledger: Ledger
    ) -> None:
        await self._start_while_erased(ledger, lambda work: work.sessions.use(chat_session()))

    @on_fresh_ledger
    async def test_session_that_is_ensured_while_it_is_erased_is_there_with_its_run(
        self, ledger: Ledger
    ) -> None:
        await self._start_while_erased(ledger, lambda work: work.sessions.ensure(chat_session()))

    async def _start_while_erased(self, ledger: Ledger, keep: Body[None] | None) -> None:
        async def start(run_id: str) -> None:
            if keep is None:
                await ledger.start(chat_session(), started(run_id))
                return

            async def body(work: UnitOfWork) -> None:
                await keep(work)
                await work.runs.add(started(run_id))

            await ledger.transact(body)

        async def erase() -> None:
            async def body(work: UnitOfWork) -> None:
                await work.erase("s", at=at(1))

            await ledger.transact(body)

        for n in range(8):
            await start(f"old-{n}")
            await all_at_once([start(f"one-{n}"), erase(), start(f"two-{n}")])
            async with ledger.view() as view:
                session, run = await view.sessions.get("s"), await view.runs.latest("s")
            assert session is not None or run is None


def _without_id(entry: AgentStep | ToolInvocation) -> AgentStep | ToolInvocation:
    return evolve(entry, id=None)
