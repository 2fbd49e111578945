"""What each use case sends to the database, one by one: no later change adds a round trip unseen.

The statements are those of ``docs/performance.md``, section Statements, on both databases.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from attrs import define, field
from support.statements import heard
from unit.service.scene import LEASE, Scene, scene

from casenotes.adapters import postgres as on_postgres
from casenotes.adapters import sqlite as on_sqlite
from casenotes.adapters.postgres.commits import ABREAST
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.adapters.sql.tables import metadata
from casenotes.core.model import RunKey
from casenotes.core.service.leases import LeaseKeeper
from casenotes.core.service.recording import Idempotency, Recording
from casenotes.core.words import AgentFlow

GUIDE = Path(__file__).parents[2] / "docs" / "performance.md"
ROW = r"^\| ([^|`]+) \| (`[^|]+`) \| (\d+) \|([^|]*)\|$"
TOGETHER = 16
"""Entries that are recorded at once."""

Open = Callable[[], SqlLedger]


@pytest.fixture(params=["sqlite", "postgres"])
def open_ledger(request: pytest.FixtureRequest, ledger_path: Path) -> Iterator[Open]:
    """Opens an empty ledger in each database in turn."""
    if request.param == "sqlite":
        yield lambda: on_sqlite.open_ledger(f"sqlite:///{ledger_path}")
        return
    with request.getfixturevalue("postgres").copy("head") as url:
        yield lambda: on_postgres.open_ledger(url)


def is_sqlite(ledger: SqlLedger) -> bool:
    return ledger.dialect.compiler.name == "sqlite"


def in_short(statement: str) -> str:
    """What a statement does, and to which tables: ``LOCK`` for a read that keeps its rows from others."""
    if not re.match("SELECT|INSERT|UPDATE|DELETE|WITH", statement):
        return statement.split()[0]
    written: dict[str, list[str]] = {}
    for verb, table in re.findall(r"\b(INSERT|DELETE|UPDATE) (?:INTO |FROM )?(\w+)", statement):
        if table in metadata.tables:
            written.setdefault(verb, []).append(table)
    if written:
        return ", ".join(f"{verb} {', '.join(tables)}" for verb, tables in written.items())
    read = dict.fromkeys(re.findall(r"\b(?:FROM|JOIN) (\w+)", statement))
    tables = ", ".join(table for table in read if table in metadata.tables)
    return f"{'LOCK' if re.search('FOR UPDATE( SKIP LOCKED)?$', statement) else 'SELECT'} {tables}"


@define
class Acts:
    """What was sent, by the act in which it was."""

    statements: dict[str, list[str]] = field(factory=dict)
    _now: list[str] | None = None

    def note(self, statement: str) -> None:
        if self._now is not None:
            self._now.append(in_short(statement))

    @contextmanager
    def act(self, name: str) -> Iterator[None]:
        """What is sent in the block is sent for this."""
        self._now = self.statements[name] = []
        yield
        self._now = None


async def whole_story(s: Scene, acts: Acts) -> None:
    """Every use case once, each in an act of its own."""
    await recorded(s, acts)
    await rated(s, acts)
    await read(s, acts)
    await kept(s, acts)
    act, conversations = acts.act, s.service.conversations
    with act("forget a conversation's context"):
        await conversations.clear("s")
    with act("erase a session"):
        await conversations.erase("s")


async def start(s: Scene, session_id: str = "s", idempotency: Idempotency | None = None) -> Recording:
    recording = await s.service.recorder.start(session_id, "Why?", AgentFlow.CHAT, idempotency=idempotency)
    assert isinstance(recording, Recording)
    return recording


async def recorded(s: Scene, acts: Acts) -> None:
    act, key = acts.act, Idempotency("key", "digest")
    with act("start a run, of a new session"):
        run = await start(s)
    with act("record a step"):
        await run.step("planner")
    with act("record a tool call"):
        await run.tool("logs.search")
    with act("note that the conversation was not read"):
        await run.context_lost()
    with act("end a run, answered"):
        await run.succeed("The pool is exhausted.")
    with act("look whether an answered run is still on record"):
        assert await run.is_on_record()
    with act("start a run, of a known session"):
        run = await start(s)
    with act("end a run, failed"):
        await run.fail("no model")
    with act("start a run, with an Idempotency-Key"):
        run = await start(s, idempotency=key)
    await s.service.feedback.give("s", "useful", run_id=run.run.run_id)
    with act("end a run, answered and rated useful before"):
        await run.succeed("The pool is exhausted.")
    with act("start a run, with a key that was used"):
        assert not isinstance(
            await s.service.recorder.start("s", "Why?", AgentFlow.CHAT, idempotency=key), Recording
        )


async def rated(s: Scene, acts: Acts) -> None:
    act, give = acts.act, s.service.feedback.give
    with act("rate the latest run useful"):
        receipt = await give("s", "useful")
    with act("rate a named run useful"):
        await give("s", "useful", run_id=receipt.run_id)
    with act("rate a named run not useful"):
        await give("s", "not_useful", run_id=receipt.run_id)


async def read(s: Scene, acts: Acts) -> None:
    act, reading = acts.act, s.service.reading
    with act("read the trace of the latest run"):
        trace = await reading.trace("s")
    assert trace.run is not None
    with act("read the trace of a named run"):
        await reading.trace("s", trace.run.run_id)
    with act("list a session's runs"):
        page = await reading.runs("s", limit=1)
    with act("list a session's runs, next page"):
        assert await reading.runs("s", limit=1, before=page[-1].run_id)
    with act("read a session's summary"):
        await reading.session("s")
    with act("list sessions"):
        assert await reading.sessions()
    with act("list cases"):
        await reading.cases()


async def kept(s: Scene, acts: Acts) -> None:
    """Leases."""
    act, run = acts.act, await start(s)
    mine: set[RunKey] = {(run.run.session_id, run.run.run_id)}
    keeper = LeaseKeeper(s.service.recorder, lambda: frozenset(mine), s.service.executions.lost)
    with act("keep the leases of this process's runs"):
        await keeper.tick()
    mine.clear()
    s.clock.move(2 * LEASE)
    with act("end a run whose lease is over"):
        await keeper.tick()
    assert s.observed.over[-1].run_id == run.run.run_id
    with act("look for leases that are over, of which there are none"):
        await keeper.tick()


def expected(*, sqlite: bool) -> Mapping[str, Sequence[str]]:
    """The statements that the guide names, by use case."""
    _, _, after = GUIDE.read_text("utf-8").partition("\n## Statements\n")
    section, _, _ = after.partition("\n## ")
    found = {}
    for name, usual, number, own in re.findall(ROW, section, re.MULTILINE):
        statements = re.findall("`([^`]+)`", usual)
        assert len(statements) == int(number), f"{name}: the number of its statements"
        if sqlite:
            statements = re.findall("`([^`]+)`", own) or list(unlocked(statements))
        found[name] = statements
    return found


def unlocked(statements: Sequence[str]) -> Sequence[str]:
    """The same on SQLite, where whoever writes has the file to itself, and reads lock nothing."""
    return [statement.replace("LOCK ", "SELECT ") for statement in statements]


def rows_of(statements: Mapping[str, Sequence[str]]) -> str:
    """What the guide has to say, were these right."""
    return "\n".join(
        f"| {name} | {', '.join(f'`{one}`' for one in sent)} | {len(sent)} | |"
        for name, sent in statements.items()
    )


def play(open_ledger: Open, play_on: Callable[[SqlLedger], Awaitable[None]]) -> None:
    async def played() -> None:
        ledger = open_ledger()
        try:
            async with asyncio.timeout(60):
                await play_on(ledger)
        finally:
            await ledger.close()

    asyncio.run(played())


def test_use_cases_send_the_statements_that_the_guide_names_and_no_others(open_ledger: Open) -> None:
    acts = Acts()

    async def on(ledger: SqlLedger) -> None:
        with heard(acts.note):
            await whole_story(scene(ledger=ledger), acts)
        assert acts.statements == expected(sqlite=is_sqlite(ledger)), rows_of(acts.statements)

    play(open_ledger, on)


def transactions(ledger: SqlLedger, sent: Sequence[str]) -> int:
    """How often the disk is waited for: on Postgres such an insert is a transaction by itself."""
    return sent.count("COMMIT" if is_sqlite(ledger) else "INSERT agent_step")


def alone(ledger: SqlLedger) -> int:
    """How many entries go alone: those that find nobody writing."""
    return 1 if is_sqlite(ledger) else ABREAST


def test_entries_that_arrive_together_are_made_durable_together(open_ledger: Open) -> None:
    acts = Acts()

    async def on(ledger: SqlLedger) -> None:
        run = await start(scene(ledger=ledger))
        with heard(acts.note), acts.act("together"):
            await asyncio.gather(*(run.step("planner") for _ in range(TOGETHER)))
        assert await steps_of(ledger, run) == TOGETHER
        assert transactions(ledger, acts.statements["together"]) == alone(ledger) + 1, acts.statements

    play(open_ledger, on)


def test_entries_that_arrive_while_others_are_written_are_made_durable_together(open_ledger: Open) -> None:
    acts = Acts()

    async def on(ledger: SqlLedger) -> None:
        run, entries = await start(scene(ledger=ledger)), []
        with heard(acts.note), acts.act("busy"):
            async with ledger.work() as work:
                # On SQLite whoever has read is the only writer. On Postgres a run that is locked would be passed over.
                if is_sqlite(ledger):
                    await work.runs.lock(run.run.session_id, run.run.run_id)
                else:
                    await work.runs._transaction.all(sa.text("LOCK TABLE agent_step IN SHARE MODE"))
                for _ in range(TOGETHER):
                    entries.append(asyncio.create_task(run.step("planner")))
                    for _ in range(5):  # until it waits: the next one comes later, and not with it
                        await asyncio.sleep(0)
            await asyncio.gather(*entries)
        assert await steps_of(ledger, run) == TOGETHER
        assert transactions(ledger, acts.statements["busy"]) == alone(ledger) + 1, acts.statements

    play(open_ledger, on)


async def steps_of(ledger: SqlLedger, run: Recording) -> int:
    async with ledger.view() as view:
        return len(await view.journal.steps(run.run.session_id, run.run.run_id))
