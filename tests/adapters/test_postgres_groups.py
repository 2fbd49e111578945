"""What shares a commit in PostgreSQL: what befalls one of those who do is its own."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence

import pytest
from adapters.postgres_scene import on_ledger
from attrs import evolve
from support.postgres import PostgresDatabases, rows
from support.statements import heard
from unit.service.scene import LEASE, scene

from casenotes.adapters.postgres import ends
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.core.ending import OnRecord, RunEnd
from casenotes.core.errors import LedgerUnavailable
from casenotes.core.model import DiagnosisRun, RunKey
from casenotes.core.service.leases import LeaseKeeper
from casenotes.core.service.recording import Recording
from casenotes.core.words import AgentFlow
from casenotes.ports.contract.ends import succeeding
from casenotes.ports.contract.stage import at, chat_session, read_run, read_session, started

MANY = 20
SOONER = 15
"""Seconds, fewer than the server lets anybody wait for what others hold."""

REFUSING = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF NEW.run_id = 'r-7' THEN RAISE 'not this one'; END IF; RETURN NEW; END $$
"""


@pytest.fixture
def url(postgres: PostgresDatabases) -> Iterator[str]:
    """An empty ledger."""
    with postgres.copy("head") as url:
        yield url


def runs_in(sessions: int) -> Sequence[DiagnosisRun]:
    return [started(f"r-{n}", f"s-{n % sessions}") for n in range(MANY)]


async def start_all(ledger: SqlLedger, runs: Sequence[DiagnosisRun]) -> list[DiagnosisRun | BaseException]:
    return await asyncio.gather(
        *(ledger.start(chat_session(run.session_id), run) for run in runs), return_exceptions=True
    )


async def end_all(ledger: SqlLedger, runs: Sequence[DiagnosisRun]) -> list[DiagnosisRun | BaseException]:
    return await asyncio.gather(
        *(ledger.end(run.session_id, run.run_id, succeeding(run.run_id, 20)) for run in runs),
        return_exceptions=True,
    )


async def refuse_r_7(url: str, when: str) -> None:
    """From now on the server refuses this for the run of this id."""
    await rows(url, REFUSING)
    await rows(
        url, f"CREATE TRIGGER refusing BEFORE {when} ON diagnosis_run FOR EACH ROW EXECUTE FUNCTION refuse()"
    )


def failed(outcomes: Sequence[object]) -> list[tuple[int, type]]:
    return [(n, type(outcome)) for n, outcome in enumerate(outcomes) if not isinstance(outcome, DiagnosisRun)]


def test_runs_that_end_together_share_a_commit_and_all_statements(url: str) -> None:
    async def act(ledger: SqlLedger) -> None:
        runs, sent = runs_in(5)[: ends.ABREAST + ends.MOST], list[str]()
        await start_all(ledger, runs)
        with heard(sent.append):
            outcomes = await end_all(ledger, runs)
        assert failed(outcomes) == []
        assert sent.count("COMMIT") == sent.count("BEGIN") == ends.ABREAST + 1, sent
        assert len(sent) == 5 * (ends.ABREAST + 1), sent

    on_ledger(url, act)


def test_run_that_the_server_does_not_let_end_fails_alone(url: str) -> None:
    async def act(ledger: SqlLedger) -> None:
        runs = runs_in(5)
        await start_all(ledger, runs)
        await refuse_r_7(url, "UPDATE")
        assert failed(await end_all(ledger, runs)) == [(7, LedgerUnavailable)]
        stored = [await read_run(ledger, run.session_id, run.run_id) for run in runs]
        assert [run.run_id for run in stored if run.status == "RUNNING"] == ["r-7"]
        sessions = [await read_session(ledger, f"s-{n}") for n in range(5)]
        assert [session.message_pair_count for session in sessions] == [4, 4, 3, 4, 4]

    on_ledger(url, act)


def test_run_whose_row_cannot_be_read_does_not_keep_others_from_ending(url: str) -> None:
    async def act(ledger: SqlLedger) -> None:
        runs = runs_in(5)
        await start_all(ledger, runs)
        await rows(url, "UPDATE diagnosis_run SET status = 'WANDERING' WHERE run_id = 'r-7'")
        assert failed(await end_all(ledger, runs)) == [(7, LedgerUnavailable)]

    on_ledger(url, act)


def test_decisions_that_do_not_fit_their_record_undo_what_was_decided_with_them_until_each_is_tried_alone(
    url: str,
) -> None:
    async def act(ledger: SqlLedger) -> None:
        runs, asked = runs_in(1), list[str]()
        await start_all(ledger, runs)

        def decide(found: OnRecord) -> RunEnd | None:
            asked.append(found.run.run_id)
            return succeeding(seconds=20)(found)

        def off_the_chain(found: OnRecord) -> RunEnd | None:
            end = decide(found)
            assert end is not None
            return RunEnd(end.run, evolve(end.seal, position=end.seal.position + 3), None, None)

        outcomes = await asyncio.gather(
            *(
                ledger.end("s-0", run.run_id, off_the_chain if run.run_id == "r-7" else decide)
                for run in runs
            ),
            return_exceptions=True,
        )
        assert failed(outcomes) == [(7, ValueError)]
        assert asked.count("r-8") == 2, "once with the others, and once alone"
        async with ledger.work() as work:
            assert (await work.sessions.lock_chain("s-0")).count == MANY - 1

    on_ledger(url, act)


@pytest.mark.parametrize("what", ["session", "run"])
def test_run_that_others_hold_keeps_nobody_from_ending(url: str, what: str) -> None:
    async def act(ledger: SqlLedger) -> None:
        runs = runs_in(MANY)
        await start_all(ledger, runs)
        async with ledger.work() as work:
            await (work.sessions.lock_chain("s-7") if what == "session" else work.runs.lock("s-7", "r-7"))
            tasks = [
                asyncio.create_task(ledger.end(run.session_id, run.run_id, succeeding())) for run in runs
            ]
            held = tasks.pop(7)
            async with asyncio.timeout(SOONER):
                await asyncio.gather(*tasks)
            assert not held.done()
        assert (await held).status == "SUCCESS"

    on_ledger(url, act)


def test_run_that_others_hold_keeps_no_entry_of_another_waiting(url: str) -> None:
    async def act(ledger: SqlLedger) -> None:
        runs = runs_in(MANY)
        await start_all(ledger, runs)
        async with ledger.work() as work:
            await work.runs.lock("s-7", "r-7")
            steps = [run.step(n, "planner", at(1)) for run in runs for n in (1, 2)]
            tasks = {step: asyncio.create_task(ledger.record(step)) for step in steps}
            held = [task for step, task in tasks.items() if step.run_id == "r-7"]
            async with asyncio.timeout(SOONER):
                await asyncio.gather(*(task for step, task in tasks.items() if step.run_id != "r-7"))
            assert not any(task.done() for task in held)
        await asyncio.gather(*held)
        async with ledger.view() as view:
            assert [step.sequence for step in await view.journal.steps("s-7", "r-7")] == [1, 2]

    on_ledger(url, act)


def test_run_that_others_hold_keeps_no_lease_of_another_from_being_renewed(url: str) -> None:
    async def act(ledger: SqlLedger) -> None:
        runs = runs_in(MANY)
        await start_all(ledger, runs)
        keys = {(run.session_id, run.run_id) for run in runs}
        async with ledger.work() as holding:
            await holding.runs.lock("s-7", "r-7")
            async with ledger.work() as work:
                renewed = await work.runs.renew(keys, owner="alpha", until=at(90))
                await work.commit()
        assert keys - renewed == {("s-7", "r-7")}
        assert (await read_run(ledger, "s-6", "r-6")).lease_expires_at == at(90)

    on_ledger(url, act)


@pytest.mark.parametrize("waiting", [1, 4])
def test_starts_that_wait_for_a_session_that_others_hold_are_refused_in_time_and_none_is_left(
    url: str, monkeypatch: pytest.MonkeyPatch, waiting: int
) -> None:
    monkeypatch.setattr("casenotes.adapters.postgres.COMMAND_SECONDS", 1)

    async def act(ledger: SqlLedger) -> None:
        await start_all(ledger, runs_in(1)[-1:])
        async with ledger.work() as work:
            await work.sessions.lock_chain("s-0")
            async with asyncio.timeout(1.5):
                outcomes = await start_all(ledger, runs_in(1)[:waiting])
            assert all("SQLSTATE" in str(outcome) for outcome in outcomes), (
                "the server refused each, and knows it"
            )
            waits = "datname = current_database() and wait_event_type = 'Lock'"
            assert await rows(url, f"select 1 from pg_stat_activity where {waits}") == []

    on_ledger(url, act)


def test_what_others_hold_is_given_up_by_the_server_in_time_and_no_statement_is_left_there(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casenotes.adapters.postgres.COMMAND_SECONDS", 1)

    async def act(ledger: SqlLedger) -> None:
        [run] = runs_in(1)[:1]
        await start_all(ledger, [run])
        async with ledger.work() as work:
            await work.sessions.lock_chain("s-0")
            with pytest.raises(LedgerUnavailable, match="what others hold"):
                await ledger.end("s-0", "r-0", succeeding())
            waits = "datname = current_database() and wait_event_type = 'Lock'"
            assert await rows(url, f"select 1 from pg_stat_activity where {waits}") == []
        assert (await ledger.end("s-0", "r-0", succeeding())).status == "SUCCESS"

    on_ledger(url, act)


def test_run_that_others_hold_is_not_taken_for_lost_by_the_process_that_executes_it(url: str) -> None:
    async def act(ledger: SqlLedger) -> None:
        lost: list[RunKey] = []

        async def note(gone: Collection[RunKey]) -> None:
            lost.extend(gone)

        s = scene(ledger=ledger)
        begun = [await s.service.recorder.start(f"s-{n}", "Why?", AgentFlow.CHAT) for n in range(3)]
        runs = [one.run for one in begun if isinstance(one, Recording)]
        keys = frozenset((run.session_id, run.run_id) for run in runs)
        keeper = LeaseKeeper(s.service.recorder, lambda: keys, note)
        s.clock.move(LEASE / 3)
        async with ledger.work() as holding:
            await holding.runs.lock("s-1", runs[1].run_id)
            await keeper.tick()
        leases = [(await read_run(ledger, run.session_id, run.run_id)).lease_expires_at for run in runs]
        assert leases == [s.clock.now + LEASE, runs[1].lease_expires_at, s.clock.now + LEASE]
        await keeper.tick()
        assert (await read_run(ledger, "s-1", runs[1].run_id)).lease_expires_at == s.clock.now + LEASE
        assert lost == []
        await ledger.end("s-1", runs[1].run_id, succeeding(seconds=90))
        await keeper.tick()
        assert lost == [("s-1", runs[1].run_id)]

    on_ledger(url, act)


def test_orphan_that_others_hold_keeps_no_other_from_being_ended(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casenotes.adapters.postgres.COMMAND_SECONDS", 1)

    async def act(ledger: SqlLedger) -> None:
        s = scene(ledger=ledger)
        for n in range(3):
            await s.service.recorder.start(f"s-{n}", "Why?", AgentFlow.CHAT)
        s.clock.move(2 * LEASE)
        async with ledger.work() as holding:
            await holding.sessions.lock_chain("s-0")
            await s.service.leases.tick()
        assert sorted(run.session_id for run in s.observed.over) == ["s-1", "s-2"]
        assert s.observed.faults == ["ending a run without an owner"]
        await s.service.leases.tick()
        assert sorted(run.session_id for run in s.observed.over) == ["s-0", "s-1", "s-2"]

    on_ledger(url, act)
