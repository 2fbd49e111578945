from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest
import sqlalchemy as sa
from adapters.postgres_scene import on_ledger
from support.postgres import PostgresDatabases, rows, until

from casenotes.adapters.postgres import open_ledger
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.adapters.sql.tables import chat_session as chat_session_table
from casenotes.adapters.sql.transaction import Transaction
from casenotes.core.errors import InvalidSettings, LedgerUnavailable
from casenotes.core.service.feedback import FeedbackDesk
from casenotes.ports.contract.stage import add_run, answered, at, chat_session, committed, started

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
