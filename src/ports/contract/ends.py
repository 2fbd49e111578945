"""The end of a run by ``Ledger.end``: decided from what stands on record, alone or with others, each by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

import pytest
from attrs import evolve

from casenotes.core.ending import Decide, OnRecord, RunEnd, end_of
from casenotes.core.errors import InvalidTransition, RunNotFound
from casenotes.core.model import DiagnosisRun, RunMetrics
from casenotes.core.seal import ChainHead, seal
from casenotes.ports.contract.commits import entries
from casenotes.ports.contract.stage import (
    NAIVE,
    add_run,
    add_runs,
    all_at_once,
    at,
    committed,
    on_fresh_ledger,
    picture,
    read_run,
    read_session,
    started,
    useful,
)
from casenotes.ports.ledger import Ledger


class Abandoned(Exception):
    """An error of the caller's own."""


def succeeding(answer: str = "because", seconds: float = 5, expires_at: datetime | None = None) -> Decide:
    """Ends a run that is RUNNING with this answer, at this time; raises ``InvalidTransition`` for another."""
    return lambda found: end_of(
        found,
        lambda run, metrics, _: run.succeed(
            answer, at(seconds), metrics, self_evaluation={"n": 0.5, "of": [answer, None]}
        ),
        expires_at=expires_at,
    )


def failing(seconds: float = 5) -> Decide:
    return lambda found: end_of(
        found,
        lambda run, metrics, _: run.fail("no model", at(seconds), metrics, orchestration_trace={"at": []}),
        expires_at=None,
    )


def abandon(_: OnRecord) -> RunEnd:
    raise Abandoned


def leave(_: OnRecord) -> None:
    return None


def at_a_time_without_a_zone(found: OnRecord) -> RunEnd:
    ended = evolve(found.run.succeed("because", at(5), RunMetrics(0, 0)), finished_at=NAIVE)
    return RunEnd(ended, seal(ended, [], [], found.head), None, None)


def off_the_chain(found: OnRecord) -> RunEnd:
    ended = found.run.succeed("because", at(5), RunMetrics(0, 0))
    return RunEnd(ended, seal(ended, [], [], ChainHead(found.head.count + 7, "d")), None, None)


def without_an_end(found: OnRecord) -> RunEnd:
    return RunEnd(found.run, seal(found.run, [], [], found.head), None, None)


REFUSED: dict[Callable[[OnRecord], RunEnd], type[Exception]] = {
    abandon: Abandoned,
    at_a_time_without_a_zone: ValueError,
    off_the_chain: ValueError,
    without_an_end: ValueError,
}
"""Decisions that are not carried out, and the error of each."""


async def chain(ledger: Ledger, session_id: str) -> ChainHead:
    async with ledger.work() as work:
        return await work.sessions.lock_chain(session_id)


class EndsContract:
    @on_fresh_ledger
    async def test_decision_is_told_the_run_its_entries_and_the_chain(self, ledger: Ledger) -> None:
        first, second, other = await add_runs(
            ledger, started("r-1"), started("r-2"), started("r-other", "other")
        )
        for entry in (*entries(first, 3), *entries(second, 1), *entries(other, 1)):
            await ledger.record(entry)
        done = await ledger.end("s", "r-2", succeeding())
        told: list[OnRecord] = []
        await ledger.end("s", "r-1", lambda found: told.append(found))
        async with ledger.view() as view:
            steps, tools = await view.journal.entries("s", "r-1")
        assert [(one.run, [*one.steps], [*one.tools], one.head) for one in told] == [
            (first, [*steps], [*tools], ChainHead(1, done.digest))
        ]

    @on_fresh_ledger
    async def test_run_that_ends_is_stored_with_its_seal_and_its_session_touched(
        self, ledger: Ledger
    ) -> None:
        run = await add_run(ledger, started())
        for entry in entries(run, 2):
            await ledger.record(entry)
        ended = await ledger.end("s", "r", succeeding("because", 7, at(900)))
        async with ledger.view() as view:
            recorded = await view.journal.entries("s", "r")
        expected = run.succeed(
            "because", at(7), RunMetrics(2, 2), self_evaluation={"n": 0.5, "of": ["because", None]}
        )
        sealed = seal(expected, *recorded, ChainHead())
        assert ended == evolve(expected, digest=sealed.digest)
        assert await read_run(ledger, "s", "r") == ended
        assert await chain(ledger, "s") == sealed.head
        session = await read_session(ledger, "s")
        assert (session.last_active_at, session.expires_at, session.message_pair_count) == (at(7), at(900), 1)

    @on_fresh_ledger
    async def test_run_that_fails_counts_no_turn_and_leaves_the_time_to_live(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, started("r-1"), started("r-2"))
        await ledger.end("s", "r-1", succeeding(seconds=9, expires_at=at(900)))
        ended = await ledger.end("s", "r-2", failing(seconds=3))
        assert await read_run(ledger, "s", "r-2") == ended
        assert (ended.id, ended.error_message) == (runs[1].id, "no model")
        session = await read_session(ledger, "s")
        assert (session.last_active_at, session.expires_at, session.message_pair_count) == (at(9), at(900), 1)

    @on_fresh_ledger
    async def test_run_rated_useful_before_it_ends_has_its_case_when_it_ends(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, *(started(f"r-{n}") for n in range(9)))
        async with committed(ledger) as work:
            for run in runs[::2]:
                await work.runs.set_feedback("s", run.run_id, useful(run.run_id))
        await all_at_once(
            ledger.end("s", run.run_id, succeeding(f"because {n}", 20)) for n, run in enumerate(runs)
        )
        async with ledger.view() as view:
            cases = [await view.cases.of_run(run.run_id) for run in runs]
        assert [case and case.answer for case in cases] == [
            f"because {n}" if n % 2 == 0 else None for n in range(9)
        ]
        ended = [await read_run(ledger, "s", run.run_id) for run in runs]
        assert [run.feedback_comment for run in ended[::2]] == [run.run_id for run in runs[::2]]

    @on_fresh_ledger
    async def test_decision_for_nothing_writes_nothing_and_gives_the_run_as_it_stands(
        self, ledger: Ledger
    ) -> None:
        running, done = await add_runs(ledger, started("r-1"), started("r-2"))
        done = await ledger.end("s", "r-2", succeeding())
        before = await picture(ledger)
        assert await ledger.end("s", "r-1", leave) == running
        assert await ledger.end("s", "r-2", leave) == done
        assert await picture(ledger) == before

    @pytest.mark.parametrize("decide", REFUSED, ids=lambda decide: decide.__name__)
    @on_fresh_ledger
    async def test_decision_that_is_refused_writes_nothing(
        self, ledger: Ledger, decide: Callable[[OnRecord], RunEnd]
    ) -> None:
        await add_run(ledger, started())
        before = await picture(ledger)
        with pytest.raises(REFUSED[decide]):
            await ledger.end("s", "r", decide)
        assert await picture(ledger) == before

    @pytest.mark.parametrize(
        "key", [("s", "unknown"), ("other", "r"), ("unknown", "r"), ("without", "r-without")]
    )
    @on_fresh_ledger
    async def test_run_that_is_not_there_or_has_no_session_is_not_ended(
        self, ledger: Ledger, key: tuple[str, str]
    ) -> None:
        await add_runs(ledger, started(), started("r-other", "other"))
        async with committed(ledger) as work:
            await work.runs.add(started("r-without", "without"))
        before = [await picture(ledger, session_id) for session_id in ("s", "other", "without")]
        with pytest.raises(RunNotFound):
            await ledger.end(*key, succeeding())
        assert [await picture(ledger, session_id) for session_id in ("s", "other", "without")] == before

    @on_fresh_ledger
    async def test_runs_of_many_sessions_that_end_at_once_have_each_its_own_end(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, *(started(f"r-{n}", f"s-{n % 5}") for n in range(20)))
        for n, run in enumerate(runs):
            for entry in entries(run, n % 3):
                await ledger.record(entry)
        ended = await all_at_once(
            ledger.end(run.session_id, run.run_id, succeeding(f"because {n}", 20 + n, at(900 + n)))
            for n, run in enumerate(runs)
        )
        for n, run in enumerate(ended):
            assert (run.answer, run.step_count, run.tool_call_count) == (f"because {n}", n % 3, n % 3)
            assert run.finished_at == at(20 + n)
            assert run.self_evaluation == {"n": 0.5, "of": [f"because {n}", None]}
            assert await read_run(ledger, run.session_id, run.run_id) == run
        for n in range(5):
            session, head = await read_session(ledger, f"s-{n}"), await chain(ledger, f"s-{n}")
            assert (session.message_pair_count, head.count) == (4, 4)
            assert session.last_active_at == at(35 + n)
            assert session.expires_at in {at(900 + k) for k in range(n, 20, 5)}
            assert head.digest in {run.digest for run in ended if run.session_id == f"s-{n}"}

    @on_fresh_ledger
    async def test_each_of_those_that_end_at_once_in_a_session_continues_the_one_before_it(
        self, ledger: Ledger
    ) -> None:
        runs = await add_runs(ledger, *(started(f"r-{n}") for n in range(12)))
        heads: dict[str, ChainHead] = {}

        def deciding(run: DiagnosisRun) -> Decide:
            def decide(found: OnRecord) -> RunEnd | None:
                heads[run.run_id] = found.head
                return succeeding(run.run_id, 20)(found)

            return decide

        ended = await all_at_once(ledger.end("s", run.run_id, deciding(run)) for run in runs)
        in_order = sorted(ended, key=lambda run: heads[run.run_id].count)
        assert [heads[run.run_id] for run in in_order] == [
            ChainHead(n, in_order[n - 1].digest if n else None) for n in range(12)
        ]
        assert await chain(ledger, "s") == ChainHead(12, in_order[-1].digest)

    @on_fresh_ledger
    async def test_end_that_is_refused_fails_alone_among_those_that_end_with_it(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, *(started(f"r-{n}", f"s-{n % 2}") for n in range(18)))
        await ledger.end("s-0", "r-0", succeeding("before"))
        wrong: list[tuple[str, str, Decide, type[Exception]]] = [
            ("s-0", "r-0", succeeding("again"), InvalidTransition),
            ("s-0", "unknown", succeeding(), RunNotFound),
            ("s-0", "r-1", succeeding(), RunNotFound),
            *(
                (run.session_id, run.run_id, *one)
                for run, one in zip(runs[1:], REFUSED.items(), strict=False)
            ),
        ]
        right = runs[1 + len(REFUSED) :]
        outcomes = await asyncio.gather(
            *(ledger.end(run.session_id, run.run_id, succeeding(seconds=20)) for run in right[::2]),
            *(ledger.end(session_id, run_id, decide) for session_id, run_id, decide, _ in wrong),
            *(ledger.end(run.session_id, run.run_id, failing(20)) for run in right[1::2]),
            ledger.end("s-1", "r-3", leave),
            return_exceptions=True,
        )
        failures = [type(outcome) for outcome in outcomes if isinstance(outcome, Exception)]
        assert failures == [error for *_, error in wrong]
        stored = [await read_run(ledger, run.session_id, run.run_id) for run in runs]
        assert [run.status for run in stored[1 : 1 + len(REFUSED)]] == ["RUNNING"] * len(REFUSED)
        assert stored[0].answer == "before"
        assert {run.run_id for run in stored if run.status != "RUNNING"} == {
            "r-0",
            *(run.run_id for run in right),
        }
        counts = [(await chain(ledger, session_id)).count for session_id in ("s-0", "s-1")]
        assert counts == [sum(run.digest is not None for run in stored[n::2]) for n in range(2)]

    @on_fresh_ledger
    async def test_of_many_that_end_one_run_at_once_exactly_one_does(self, ledger: Ledger) -> None:
        await add_run(ledger, started())
        outcomes = await asyncio.gather(
            *(ledger.end("s", "r", succeeding(f"because {n}")) for n in range(8)), return_exceptions=True
        )
        ended = [outcome for outcome in outcomes if isinstance(outcome, DiagnosisRun)]
        assert [type(outcome) for outcome in outcomes].count(InvalidTransition) == 7
        assert ended == [await read_run(ledger, "s", "r")]
        assert await chain(ledger, "s") == ChainHead(1, ended[0].digest)

    @on_fresh_ledger
    async def test_entries_recorded_while_their_run_ends_are_in_its_seal_or_refused(
        self, ledger: Ledger
    ) -> None:
        runs = await add_runs(ledger, *(started(f"r-{n}", f"s-{n}") for n in range(6)))
        outcomes = await asyncio.gather(
            *(ledger.record(entry) for run in runs[:3] for entry in entries(run, 4)),
            *(ledger.end(run.session_id, run.run_id, succeeding()) for run in runs),
            *(ledger.record(entry) for run in runs[3:] for entry in entries(run, 4)),
            return_exceptions=True,
        )
        assert {type(outcome) for outcome in outcomes} <= {type(None), InvalidTransition, DiagnosisRun}
        for run in runs:
            async with ledger.view() as view:
                recorded = await view.journal.entries(run.session_id, run.run_id)
            ended = await read_run(ledger, run.session_id, run.run_id)
            assert (ended.step_count, ended.tool_call_count) == tuple(map(len, recorded))
            assert ended.digest == seal(ended, *recorded, ChainHead()).digest

    @on_fresh_ledger
    async def test_caller_that_is_cancelled_while_runs_end_takes_nobody_with_it(self, ledger: Ledger) -> None:
        runs = await add_runs(ledger, *(started(f"r-{n}", f"s-{n % 3}") for n in range(12)))
        tasks = [asyncio.create_task(ledger.end(run.session_id, run.run_id, succeeding())) for run in runs]
        await asyncio.sleep(0)
        for task in tasks[::4]:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} <= {DiagnosisRun, asyncio.CancelledError}
        for run, outcome in zip(runs, outcomes, strict=True):
            if isinstance(outcome, DiagnosisRun):
                assert await read_run(ledger, run.session_id, run.run_id) == outcome
        assert sum(isinstance(outcome, DiagnosisRun) for outcome in outcomes) >= 9
