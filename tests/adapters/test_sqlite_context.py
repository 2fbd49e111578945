from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from casenotes.adapters.context import MemoryContextStore, SqliteContextStore
from casenotes.adapters.context.retention import PURGE_AT_ONCE
from casenotes.core.errors import ContextUnavailable
from casenotes.core.model import MessagePair

PAIR = MessagePair("why", "because")

APPEND_TEN = """
import asyncio, sys
from casenotes.adapters.context import SqliteContextStore
from casenotes.core.model import MessagePair

async def main():
    store = SqliteContextStore(sys.argv[1], window=1000)
    await asyncio.gather(*(store.append("s", MessagePair(f"{sys.argv[2]}-{n}", "a")) for n in range(10)))
    await store.close()

asyncio.run(main())
"""


class HandMovedClock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def rows(file: Path, table: str) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_conversation_survives_a_restart(tmp_path: Path) -> None:
    async def scene() -> None:
        for turn in range(3):
            store = SqliteContextStore(tmp_path / "context.db")
            assert len(await store.recall("s")) == turn
            await store.append("s", PAIR)
            await store.close()

    asyncio.run(scene())


def test_processes_that_share_a_fresh_file_lose_no_pair(tmp_path: Path) -> None:
    file = tmp_path / "context.db"
    processes = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", APPEND_TEN, str(file), str(number)])
        for number in range(3)
    ]
    assert [process.wait(60) for process in processes] == [0, 0, 0]

    async def scene() -> None:
        store = SqliteContextStore(file, window=1000)
        pairs = await store.recall("s")
        await store.close()
        assert sorted(pair.question for pair in pairs) == [f"{p}-{n}" for p in range(3) for n in range(10)]

    asyncio.run(scene())


def test_pairs_past_the_window_and_cleared_ones_are_gone_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "context.db"

    async def scene() -> None:
        store = SqliteContextStore(file, window=2)
        for _ in range(5):
            await store.append("s", PAIR)
        assert rows(file, "message_pair") == 2
        await store.clear("s")
        assert (rows(file, "message_pair"), rows(file, "conversation")) == (0, 0)
        await store.close()

    asyncio.run(scene())


def test_append_removes_expired_conversations_of_others_a_batch_at_a_time(tmp_path: Path) -> None:
    file, clock = tmp_path / "context.db", HandMovedClock()
    extra = 5

    async def scene() -> None:
        store = SqliteContextStore(file, ttl=60, clock=clock)
        await store.ping()
        with closing(sqlite3.connect(file)) as connection, connection:
            names = [(f"old-{number}",) for number in range(PURGE_AT_ONCE + extra)]
            connection.executemany("INSERT INTO conversation VALUES (?, 1)", names)
            connection.executemany("INSERT INTO message_pair VALUES (?, 1, 'q', 'a')", names)
        await store.append("s", PAIR)
        assert rows(file, "conversation") == extra + 1
        await store.append("s", PAIR)
        assert (rows(file, "conversation"), rows(file, "message_pair")) == (1, 2)
        await store.close()

    asyncio.run(scene())


def test_memory_store_forgets_expired_conversations_of_others_too() -> None:
    clock = HandMovedClock()

    async def scene() -> None:
        store = MemoryContextStore(ttl=60, clock=clock)
        for number in range(PURGE_AT_ONCE + 5):
            await store.append(f"old-{number}", PAIR)
        clock.move(60)
        await store.append("s", PAIR)
        assert len(store._conversations) == 5 + 1
        await store.append("s", PAIR)
        assert list(store._conversations) == ["s"]
        await store.close()

    asyncio.run(scene())


def test_cancelled_caller_leaves_the_store_in_order(tmp_path: Path) -> None:
    async def scene() -> None:
        store = SqliteContextStore(tmp_path / "context.db", window=100)
        tasks = [asyncio.create_task(store.append("s", PAIR)) for _ in range(20)]
        await asyncio.sleep(0.005)
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await store.append("s", MessagePair("last", ""))
        pairs = await store.recall("s")
        assert pairs[-1].question == "last"
        assert outcomes.count(None) < len(pairs) <= len(tasks) + 1
        await store.close()

    asyncio.run(scene())


def test_file_that_is_no_database_is_told_in_our_words_until_it_is_mended(tmp_path: Path) -> None:
    file = tmp_path / "context.db"
    file.write_text("Dear colleague, " * 1000)

    async def scene() -> None:
        store = SqliteContextStore(file)
        for attempt in (store.ping(), store.recall("s"), store.append("s", PAIR), store.clear("s")):
            with pytest.raises(ContextUnavailable, match=r"cannot be used \(SQLITE_NOTADB\)$"):
                await attempt
        file.unlink()
        await store.append("s", PAIR)
        assert await store.recall("s") == [PAIR]
        await store.close()
        with pytest.raises(ContextUnavailable, match="closed"):
            await store.ping()

    asyncio.run(scene())


@pytest.mark.parametrize(("window", "ttl"), [(0, 60), (6, 0)])
def test_store_that_could_remember_nothing_is_refused(tmp_path: Path, window: int, ttl: int) -> None:
    for make in (
        lambda: MemoryContextStore(window, ttl),
        lambda: SqliteContextStore(tmp_path / "c.db", window, ttl),
    ):
        with pytest.raises(ValueError, match=r"must be >"):
            make()
