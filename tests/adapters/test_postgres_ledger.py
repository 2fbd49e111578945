from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest
import sqlalchemy as sa
from adapters.postgres_scene import on_ledger
from support.postgres import PostgresDatabases, rows, until
from unit.service.scene import scene

from casenotes.adapters.postgres import open_ledger
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.adapters.sql.tables import chat_session as chat_session_table
from casenotes.adapters.sql.transaction import Transaction
from casenotes.core.errors import InvalidSettings, LedgerUnavailable
from casenotes.core.seal import ChainHead
from casenotes.core.service.feedback import FeedbackDesk
from casenotes.ports.contract.stage import (
    add_run,
    answered,
    at,
    case_of,
    chat_session,
    committed,
    end,
    key_named,
    put_cases,
    read_run,
    read_session,
    started,
)

WAITS = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


@pytest.fixture
def url(postgres: PostgresDatabases) -> Iterator[str]:
    """An empty ledger."""
    with postgres.copy("head") as url:
        yield url


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("secret", "cannot be read"),
        ("mysql://u:secret@h/db", "not one of PostgreSQL"),
        ("postgresql://u:secret@h/db?pgbouncer=session", "'transaction' only"),
        ("postgresql://u:secret@h/db?connect_timeout=3", "host, port, pgbouncer, sslmode only"),
        ("postgresql://u:secret@h/db?sslmode=perhaps", "sslmode may be"),
    ],
)
def test_url_that_is_wrong_is_refused(url: str, words: str) -> None:
    with pytest.raises(InvalidSettings, match=words) as refused:
        open_ledger(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_every_way_to_write_the_scheme_is_understood(url: str, scheme: str) -> None:
    async def scene(ledger: SqlLedger) -> None:
        await ledger.check()

    on_ledger(f"{scheme}:{url.partition(':')[2]}", scene)


def test_password_that_is_wrong_and_sslmode_that_cannot_be_had_are_told_without_the_password(
    url: str,
) -> None:
    async def scene() -> None:
        ledger = open_ledger(url.replace("postgres@", "nobody:hunter2@") + "&sslmode=disable")
        with pytest.raises(LedgerUnavailable) as told:
            await ledger.check()
        await ledger.close()
        assert "hunter2" not in str(told.value) and "SQLSTATE 28" in str(told.value)

    asyncio.run(scene())


async def shown(transaction: Transaction, setting: str) -> object:
    row = await transaction.one(sa.text(f"show {setting}"))
    assert row is not None
    return row[setting]


def test_view_is_one_read_only_snapshot_to_the_server_and_work_after_it_is_not(url: str) -> None:
    async def scene(ledger: SqlLedger) -> None:
        for _ in range(2):
            async with ledger.view() as view:
                transaction = view.sessions._transaction
                assert await shown(transaction, "transaction_read_only") == "on"
                assert await shown(transaction, "transaction_isolation") == "repeatable read"
                with pytest.raises(LedgerUnavailable, match=r"read-only \(SQLSTATE 25006\)$"):
                    await transaction.run(chat_session_table.delete())
            async with ledger.work() as work:
                transaction = work.sessions._transaction
                assert await shown(transaction, "transaction_read_only") == "off"
                assert await shown(transaction, "transaction_isolation") == "read committed"

    on_ledger(url, scene)


@pytest.mark.parametrize("after_ms", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55])
def test_cancelled_tasks_leave_nothing_open_and_nothing_half_written(url: str, after_ms: int) -> None:
    async def scene(ledger: SqlLedger) -> None:
        finished = set[str]()

        async def write(name: str) -> None:
            async with ledger.work() as work:
                await work.sessions.ensure(chat_session(name))
                run = await work.runs.add(started(name, name))
                await work.journal.add_step(run.step(1, "planner", at()))
                await work.commit()
                finished.add(name)

        async def read(name: str) -> None:
            async with ledger.view() as view:
                await view.runs.latest(name)
                await view.sessions.page(query=name, before=None, limit=9)

        await ledger.check()
        names = [f"n-{number}" for number in range(12)]
        tasks = [asyncio.create_task(do(name)) for name in names for do in (write, read)]
        await asyncio.sleep(after_ms / 1000)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        await write("afterwards")
        async with ledger.view() as view:
            for name in names:
                run, steps = await view.runs.get(name, name), await view.journal.steps(name, name)
                assert (run is None) == (len(steps) == 0)
                assert run is not None or name not in finished

    on_ledger(url, scene)


def test_feedback_without_a_run_id_names_the_run_that_changed_while_runs_arrive(url: str) -> None:
    """``lock_latest`` under READ COMMITTED: the row that is locked is the row that is named and written."""

    async def scene(ledger: SqlLedger) -> None:
        ticks, given = count(1), dict[str, set[str | None]]()
        desk = FeedbackDesk(ledger, lambda: at(next(ticks)))
        await add_run(ledger, answered(started("r-0")))

        async def arrive(number: int) -> None:
            async with committed(ledger) as work:
                await work.runs.add(answered(started(f"r-{number}", seconds=number % 7)))

        async def rate(number: int) -> None:
            rating = "useful" if number % 2 else "not_useful"
            receipt = await desk.give("s", rating, comment=str(number))
            assert receipt.fallback_to_latest_run and receipt.run_id is not None
            given.setdefault(receipt.run_id, set()).add(str(number))

        await asyncio.gather(*(do(number) for number in range(1, 60) for do in (arrive, rate)))
        changed = await rows(
            url, "select run_id, feedback_comment from diagnosis_run where feedback is not null"
        )
        assert {row["run_id"] for row in changed} == given.keys()
        assert all(row["feedback_comment"] in given[row["run_id"]] for row in changed)
        odd = await rows(
            url,
            "select run_id from diagnosis_run as run left join case_library as made on diagnosis_id = run_id"
            " where (coalesce(feedback, '') = 'useful') <> (coalesce(made.status, '') = 'ACTIVE')",
        )
        assert odd == [], "a run has an active case just when its last rating is useful"

    on_ledger(url, scene)


def test_session_of_a_run_that_is_to_end_is_locked_before_it_as_by_whoever_erases_them(url: str) -> None:
    async def scene(ledger: SqlLedger) -> None:
        await add_run(ledger, started())

        async def lock() -> object:
            async with ledger.work() as work:
                return await work.runs.lock_to_end("s", "r")

        async with ledger.work() as work:
            await work.runs.lock("s", "r")
            waiter = asyncio.create_task(lock())
            await until(url, WAITS, 1)
            assert await rows(url, "select session_id from chat_session for update skip locked") == []
        assert await waiter is not None

    on_ledger(url, scene)


def test_session_that_is_erased_while_the_lease_of_its_run_is_ended_does_not_come_back(url: str) -> None:
    async def act(ledger: SqlLedger) -> None:
        async with committed(ledger) as work:  # a run without a session, as another program may leave it
            await work.runs.add(started())
        keeper = scene(ledger=ledger).service.leases
        async with ledger.work() as erasing:
            await erasing.erase("s", at=at(1))
            ending = asyncio.create_task(keeper.tick())
            await until(url, WAITS, 1)
            await erasing.commit()
        await ending
        assert await rows(url, "select session_id from chat_session") == []
        assert await rows(url, "select run_id from diagnosis_run") == []

    on_ledger(url, act)


def test_statement_is_planned_once_for_any_values(url: str) -> None:
    async def scene(ledger: SqlLedger) -> None:
        await add_run(ledger, started())
        for session_id in ("s", "other", "s"):
            await ledger.trace(session_id)
        async with ledger.reading.connection() as connection:  # the one that was used last
            [plans] = await connection.fetch(
                "select generic_plans, custom_plans from pg_prepared_statements"
                " where statement like '%tool_invocation%' and statement not like '%pg_prepared%'",
                (),
            )
        assert plans == {"generic_plans": 3, "custom_plans": 0}

    on_ledger(url, scene)


@pytest.mark.parametrize("first", ["end", "erase"])
def test_run_that_ends_while_its_session_is_erased_makes_neither_give_way(url: str, first: str) -> None:
    """Whoever comes second waits: with rows locked in two orders, the server would have to undo one of them."""

    async def scene(ledger: SqlLedger) -> None:
        await add_run(ledger, started())

        async def finish() -> bool:
            async with committed(ledger) as work:
                locked = await work.runs.lock_to_end("s", "r")
                await asyncio.sleep(0)
                return locked is not None

        async def erase() -> None:
            async with committed(ledger) as work:
                await work.erase("s", at=at(1))

        async with ledger.work() as holding:  # the run, so that both are under way before either can end
            await holding.runs.lock("s", "r")
            both = {"end": finish, "erase": erase}
            one = asyncio.create_task(both.pop(first)())
            await until(url, WAITS, 1)
            other = asyncio.create_task(both.popitem()[1]())
            await until(url, WAITS, 2)
        outcomes = {first: await one, "other": await other}
        assert await rows(url, "select run_id from diagnosis_run") == []
        assert True in outcomes.values() if first == "end" else outcomes["other"] is False

    on_ledger(url, scene)


def test_run_locked_to_end_comes_with_the_chain_that_it_waited_for(url: str) -> None:
    """Under READ COMMITTED: the head is the one that the other left, not that of the statement's beginning."""

    async def scene(ledger: SqlLedger) -> None:
        await add_run(ledger, started("r-1"))
        await add_run(ledger, started("r-2", seconds=1))

        async def lock() -> ChainHead:
            async with ledger.work() as work:
                locked = await work.runs.lock_to_end("s", "r-2")
            assert locked is not None
            return locked[1]

        async with ledger.work() as work:
            ended = await end(work, answered(started("r-1")))
            waiter = asyncio.create_task(lock())
            await until(url, WAITS, 1)
            await work.commit()
        assert await waiter == ChainHead(1, ended.digest)

    on_ledger(url, scene)


def test_session_begun_while_what_is_left_of_it_is_erased_keeps_its_row(url: str) -> None:
    """As when two erase a session at once: the second finds no row of it, and yet has work to do."""

    async def scene(ledger: SqlLedger) -> None:
        async with committed(ledger) as work:
            await work.keys.claim(key_named("k"))

        async def erase() -> None:
            async with committed(ledger) as work:
                await work.erase("s", at=at(1))

        async def begin() -> None:
            async with committed(ledger) as work:
                await work.sessions.use(chat_session("s", seconds=2))
                await work.runs.add(started("r", seconds=2))

        async with ledger.work() as work:
            await work.sessions._transaction.one(sa.text("select key from idempotency_key for update"))
            eraser = asyncio.create_task(erase())
            await until(url, WAITS, 1)
            beginner = asyncio.create_task(begin())
            await done_or_waiting(beginner, url, 2)
        await asyncio.gather(eraser, beginner)
        assert await read_run(ledger, "s", "r") is not None
        assert await read_session(ledger, "s") == chat_session("s", seconds=2)

    on_ledger(url, scene)


def test_run_begun_while_its_session_is_erased_and_rated_then_leaves_no_case(url: str) -> None:
    async def scene(ledger: SqlLedger) -> None:
        await add_run(ledger, started("r-old"))
        await put_cases(ledger, case_of("r-old"))

        async def erase() -> None:
            async with committed(ledger) as work:
                await work.erase("s", at=at(1))

        async def rate() -> None:
            async with committed(ledger) as work:
                if await work.runs.lock("s", "r") is not None:
                    await work.cases.put(case_of("r"))

        async with ledger.work() as holding:
            await holding.sessions._transaction.one(sa.text("select id from case_library for update"))
            async with committed(ledger) as beginning:
                await beginning.sessions.use(chat_session())
                await beginning.runs.add(started("r", seconds=2))
                eraser = asyncio.create_task(erase())
                await until(url, WAITS, 1)
            await until(url, f"{WAITS} and query like 'DELETE FROM case_library%'", 1)
            rater = asyncio.create_task(rate())
            await done_or_waiting(rater, url, 2)
        await asyncio.gather(eraser, rater)
        assert await rows(url, "select diagnosis_id from case_library") == []

    on_ledger(url, scene)


async def done_or_waiting(task: asyncio.Task[None], url: str, number: int) -> None:
    """Wait until the task has ended, or so many wait for a lock."""
    while True:
        if task.done() or len(await rows(url, WAITS)) == number:
            return
        await asyncio.sleep(0.01)


def test_latest_run_that_is_erased_while_it_is_waited_for_is_not_given(url: str) -> None:
    async def scene(ledger: SqlLedger) -> None:
        await add_run(ledger, started("older"))
        await add_run(ledger, started("newer", seconds=1))
        waiting = asyncio.Event()

        async def lock() -> str | None:
            async with ledger.work() as work:
                waiting.set()
                run = await work.runs.lock_latest("s")
                return None if run is None else run.run_id

        async with ledger.work() as work:
            await work.erase("s", at=at())
            waiter = asyncio.create_task(lock())
            await waiting.wait()
            await until(url, WAITS, 1)
            await work.commit()
        assert await waiter is None

    on_ledger(url, scene)
