from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve

from casenotes.adapters.sql.ledger import SqlLedger, SqlView
from casenotes.adapters.sql.tables import chat_session as chat_session_table
from casenotes.adapters.sqlite import ledger_file, open_ledger
from casenotes.adapters.sqlite.threads import SqliteConnections
from casenotes.core.errors import InvalidSettings, LedgerUnavailable, SchemaOutOfDate
from casenotes.core.text import fold
from casenotes.ports.contract.stage import (
    add_run,
    add_runs,
    answered,
    at,
    chat_session,
    committed,
    end,
    end_run,
    started,
)


def on_ledger(file: Path, scene: Callable[[SqlLedger], Awaitable[None]], **options: str) -> None:
    """Play a scene on the ledger in this file; whatever it does, no connection may be out at its end."""

    async def played() -> None:
        ledger = open_ledger(f"sqlite:///{file}", **options)
        try:
            async with asyncio.timeout(60):
                await scene(ledger)
            assert out_at_the_moment(ledger) == 0
        finally:
            await ledger.close()

    asyncio.run(played())


def out_at_the_moment(ledger: SqlLedger) -> int:
    kinds = (ledger.writing, ledger.reading)
    return sum(kind.lent for kind in kinds if isinstance(kind, SqliteConnections))


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+aiosqlite"])
def test_url_names_a_file(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ledger_file(f"{scheme}:////var/lib/notes.db") == Path("/var/lib/notes.db")
    assert ledger_file(f"{scheme}:///notes.db") == tmp_path / "notes.db"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite://", "memory://"),
        ("sqlite:///:memory:", "memory://"),
        ("sqlite:///file:x?mode=memory&uri=true", "no file"),
        ("sqlite:///x.db?timeout=1", "no parameters"),
        ("postgresql://u:secret@h/db", "not an SQLite URL"),
        ("secret", "cannot be read"),
    ],
)
def test_url_that_names_no_file_is_refused(url: str, words: str) -> None:
    with pytest.raises(InvalidSettings, match=words) as refused:
        open_ledger(url)
    assert "secret" not in str(refused.value)


def test_every_connection_keeps_the_settings_that_the_ledger_rests_on(ledger_path: Path) -> None:
    async def scene(ledger: SqlLedger) -> None:
        for connections, query_only in ((ledger.writing, 0), (ledger.reading, 1)):
            async with connections.connection() as connection:

                async def setting(name: str) -> object:
                    [row] = await connection.fetch(f"PRAGMA {name}", ())
                    return next(iter(row.values()))

                assert await setting("journal_mode") == "wal"
                assert await setting("synchronous") == 2  # FULL
                assert await setting("foreign_keys") == 1
                assert await setting("busy_timeout") == 5000
                assert await setting("query_only") == query_only

    on_ledger(ledger_path, scene)


def test_store_itself_refuses_a_write_in_a_view(ledger_path: Path) -> None:
    async def scene(ledger: SqlLedger) -> None:
        async with ledger.view() as view:
            with pytest.raises(LedgerUnavailable, match="read-only"):
                await smuggled(view)

    async def smuggled(view: SqlView) -> None:
        await view.sessions._transaction.run(chat_session_table.delete())

    on_ledger(ledger_path, scene)


def test_fifty_writers_and_readers_at_once_wait_for_one_another(ledger_path: Path) -> None:
    async def scene(ledger: SqlLedger) -> None:
        async def write(number: int) -> None:
            async with committed(ledger) as work:
                await work.sessions.ensure(chat_session("s"))
                await end(work, answered(await work.runs.add(started(f"r-{number}"))))

        async def read() -> None:
            async with ledger.view() as view:
                session, runs = await view.sessions.get("s"), await view.runs.page("s", before=None, limit=99)
                assert len(runs) == (0 if session is None else session.message_pair_count)

        await asyncio.gather(*(write(number) for number in range(50)), *(read() for _ in range(50)))
        async with ledger.view() as view:
            session = await view.sessions.get("s")
        assert session is not None
        assert session.message_pair_count == 50

    on_ledger(ledger_path, scene)


@pytest.mark.parametrize("after_ms", [0, 1, 2, 3, 5, 8, 13, 21, 34])
def test_cancelled_tasks_leave_nothing_open_and_nothing_half_written(
    ledger_path: Path, after_ms: int
) -> None:
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

        names = [f"n-{number}" for number in range(12)]
        tasks = [asyncio.create_task(do(name)) for name in names for do in (write, read)]
        await asyncio.sleep(after_ms / 1000)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        assert out_at_the_moment(ledger) == 0
        await write("afterwards")  # at once: nobody holds the file
        async with ledger.view() as view:
            for name in names:
                run, steps = await view.runs.get(name, name), await view.journal.steps(name, name)
                assert (run is None) == (len(steps) == 0)
                assert run is not None or name not in finished

    on_ledger(ledger_path, scene)


def test_unit_of_work_gives_its_turn_away_whatever_its_block_raises(ledger_path: Path) -> None:
    async def scene(ledger: SqlLedger) -> None:
        for error in (OSError("mine"), TimeoutError("mine"), ValueError("mine")):
            with pytest.raises(type(error), match="mine"):
                async with ledger.work() as work:
                    await work.sessions.ensure(chat_session("s"))
                    raise error
        async with ledger.view() as view:
            assert await view.sessions.get("s") is None

    on_ledger(ledger_path, scene)


def test_unit_of_work_is_of_no_use_after_its_block(ledger_path: Path) -> None:
    async def scene(ledger: SqlLedger) -> None:
        async with ledger.work() as work:
            await work.sessions.ensure(chat_session("s"))
        for late in (work.commit(), work.sessions.get("s")):
            with pytest.raises(RuntimeError, match="ended"):
                await late

    on_ledger(ledger_path, scene)


def test_number_that_no_column_holds_is_refused_and_writes_nothing(ledger_path: Path) -> None:
    async def scene(ledger: SqlLedger) -> None:
        run = await add_run(ledger, started())
        async with ledger.work() as work:
            with pytest.raises(ValueError, match="too large"):
                await work.journal.add_step(evolve(run.step(1, "planner", at()), input_tokens=2**70))
            await work.commit()
        async with ledger.view() as view:
            assert not await view.journal.steps("s", "r")

    on_ledger(ledger_path, scene)


def test_another_process_that_holds_the_file_is_waited_for_and_then_named(
    ledger_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casenotes.adapters.sqlite.BUSY_SECONDS", 0.1)

    async def scene(ledger: SqlLedger) -> None:
        await add_run(ledger, started())
        with closing(sqlite3.connect(ledger_path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerUnavailable, match=r"held by another process \(SQLITE_BUSY\)$"):
                await add_run(ledger, started("r-2"))
            async with ledger.view() as view:
                assert await view.runs.latest("s") is not None, "readers are not kept waiting"
        await add_run(ledger, started("r-2"))

    on_ledger(ledger_path, scene)


def test_file_that_was_taken_away_is_not_made_anew(tmp_path: Path) -> None:
    gone = tmp_path / "gone.db"

    async def scene(ledger: SqlLedger) -> None:
        with pytest.raises(LedgerUnavailable, match="not there") as refused:
            await ledger.check()
        assert str(tmp_path) not in str(refused.value)
        assert not gone.exists()

    on_ledger(gone, scene)


def test_file_that_is_no_database_is_told_in_our_words(tmp_path: Path) -> None:
    file = tmp_path / "letter.db"
    file.write_text("Dear colleague, " * 1000)

    async def scene(ledger: SqlLedger) -> None:
        with pytest.raises(LedgerUnavailable, match=r"not an SQLite database \(SQLITE_NOTADB\)$"):
            await ledger.check()
        with pytest.raises(LedgerUnavailable, match=r"not an SQLite database \(SQLITE_NOTADB\)$"):
            await add_run(ledger, started())

    on_ledger(file, scene)


def test_schema_that_is_missing_old_or_new_is_told_with_what_to_do(ledger_path: Path, tmp_path: Path) -> None:
    blank = tmp_path / "blank.db"
    blank.touch()
    for file, needed, words in (
        (blank, "0006", "no tables yet: run casenotes migrate upgrade"),
        (ledger_path, "9999", "9999 is needed: run casenotes migrate upgrade"),
        (ledger_path, "0000", "newer than this version: upgrade casenotes"),
    ):

        async def scene(ledger: SqlLedger, words: str = words) -> None:
            with pytest.raises(SchemaOutOfDate, match=words):
                await ledger.check()

        on_ledger(file, scene, expected_revision=needed)


def test_statement_that_the_tables_do_not_know_is_no_riddle(ledger_path: Path) -> None:
    with closing(sqlite3.connect(ledger_path)) as other:
        other.execute("DROP TABLE chat_session")

    async def scene(ledger: SqlLedger) -> None:
        async with ledger.view() as view:
            with pytest.raises(LedgerUnavailable, match="tables may be of another version") as refused:
                await view.sessions.get("s")
        assert "chat_session" not in str(refused.value)

    on_ledger(ledger_path, scene)


def test_closed_ledger_says_so(ledger_path: Path) -> None:
    async def scene(ledger: SqlLedger) -> None:
        await ledger.check()
        await ledger.close()
        await ledger.close()
        with pytest.raises(LedgerUnavailable, match="closed"):
            await ledger.check()

    on_ledger(ledger_path, scene)


@pytest.mark.parametrize(
    "answer",
    ["", "short", "x" * 5000, " \n" * 5000 + "late", "word " * 150 + " " * 5000 + "end", "é\u0301" * 900],
)
def test_preview_of_the_start_of_an_answer_is_that_of_the_whole(ledger_path: Path, answer: str) -> None:
    async def scene(ledger: SqlLedger) -> None:
        await end_run(ledger, answered(await add_run(ledger, started()), answer))
        async with ledger.view() as view:
            [summary] = await view.runs.page("s", before=None, limit=9)
        assert summary.answer_preview == fold(answer, 200)

    on_ledger(ledger_path, scene)


def test_odd_values_of_an_adopted_file_are_still_read(ledger_path: Path) -> None:
    session = "INSERT INTO diagnosis_session (session_id, self_evaluation, created_at, updated_at) VALUES (?, ?, ?, ?)"
    step = "INSERT INTO agent_step (session_id, step_number, created_at) VALUES ('old', ?, ?)"
    tool = "INSERT INTO tool_invocation (session_id, arguments, created_at) VALUES ('old', ?, ?)"
    with closing(sqlite3.connect(ledger_path)) as other, other:
        other.execute(session, ("old", "{not json", "2024-05-06T07:08:09Z", 1714979289000))
        other.executemany(
            step, [(1, "2024-05-06 07:08:09"), (2, "2024-05-06T09:08:09+02:00"), (3, "yesterday")]
        )
        other.execute(tool, ('{"rate": NaN}', 1714979289000))

    async def scene(ledger: SqlLedger) -> None:
        async with ledger.view() as view:
            trace = await view.history.trace("old")
        assert trace is not None
        assert trace.session.self_evaluation == "{not json"
        assert trace.session.created_at == trace.session.updated_at
        first, second, third = (step.created_at for step in trace.agent_steps)
        assert first == second == trace.session.created_at
        assert third.year == 1970
        [call] = trace.tool_invocations
        assert call.arguments == {"rate": "NaN"}
        assert call.created_at == first

    on_ledger(ledger_path, scene)


def test_runs_survive_the_closing_of_the_ledger(ledger_path: Path) -> None:
    async def write(ledger: SqlLedger) -> None:
        await add_runs(ledger, started("r-1"), started("r-2", seconds=1))

    async def read(ledger: SqlLedger) -> None:
        async with ledger.view() as view:
            latest = await view.runs.latest("s")
        assert latest is not None
        assert latest.run_id == "r-2"

    on_ledger(ledger_path, write)
    on_ledger(ledger_path, read)
