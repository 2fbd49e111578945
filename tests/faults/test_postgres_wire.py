"""The wire to PostgreSQL fails at each statement of a run's life: whatever was told is stored, and all is whole."""

from __future__ import annotations

from datetime import timedelta

import pytest
from faults.scene import Replica, play, replica, settled, told_or_refused
from support.fault_proxy import Blow, Fault, FaultProxy, Side, before_postgres
from support.scripted import raising
from support.service import Backend

import casenotes
from casenotes.core.errors import LedgerUnavailable, NotFound
from casenotes.core.service.conducting import FAULT
from casenotes.core.service.leases import ORPHANED
from casenotes.core.words import RunStatus
from casenotes.entrypoints.settings import Settings

IN_TIME = 0.4
"""How long a statement may take where the wire goes silent, in seconds."""

CUTS = [Blow(Fault.CUT, side) for side in Side]
SILENCES = [Blow(Fault.HALT, side, 2 * IN_TIME) for side in Side]
SLOWNESS = Blow(Fault.DELAY, Side.AFTER, 0.02)

START = "INSERT INTO chat_session"
END = "COMMIT"
"""What a run's start and end become durable by. A start is one statement, as a step or tool call is, and commits by
itself: the first commit that is sent as such is the end's."""


async def live(here: Replica, session_id: str) -> None:
    """Ask, and rate the answer. What is told about either must be what is stored."""
    told = await told_or_refused(here.ask(session_id))
    stored = await here.stored(session_id)
    if told is not None and told.status is RunStatus.SUCCESS:
        assert [(row["status"], row["answer"]) for row in stored] == [("SUCCESS", told.answer)]
        assert [pair.answer for pair in await here.service.context.recall(session_id)] == [told.answer]
    elif told is not None:
        assert [row["status"] for row in stored] in (["FAILED"], ["RUNNING"]), told
    else:
        assert [row["status"] for row in stored] in ([], ["RUNNING"])
    try:
        receipt = await here.service.feedback.give(session_id, "useful")
    except (LedgerUnavailable, NotFound):
        return
    assert (await here.stored(session_id))[0]["run_id"] == receipt.run_id


async def statements_of_a_life(here: Replica, proxy: FaultProxy) -> list[str]:
    await live(here, "warm")  # connections are made, statements prepared
    proxy.seen.clear()
    await live(here, "counted")
    return list(proxy.seen)


async def strike_each(url: str, blow: Blow, *, every: int = 1) -> None:
    """Live once for each statement, or every so many, which then meets the blow."""
    async with before_postgres(url) as proxy, replica(url, through=proxy.url) as here:
        statements = await statements_of_a_life(here, proxy)
        assert statements.count(END) >= 2, statements  # the end, and the rating
        for number in range(0, len(statements), every):
            proxy.strike(blow, nth=number)
            await live(here, f"s-{number}")
            proxy.heal()
            again = await told_or_refused(here.ask(f"s-{number}", "And now?"))
            if again is None or again.status is RunStatus.FAILED:  # it met what had been cut
                again = await here.ask(f"s-{number}", "And now?")
            assert again.status is RunStatus.SUCCESS
        assert len(proxy.struck) == len(range(0, len(statements), every))
    await settled(url)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casenotes.adapters.postgres.COMMAND_SECONDS", IN_TIME)
    monkeypatch.setattr("casenotes.adapters.postgres.CONNECT_SECONDS", IN_TIME)


@pytest.mark.parametrize("blow", CUTS, ids=str)
def test_wire_that_is_cut_at_any_statement_loses_nothing_that_was_told(blow: Blow, postgres_url: str) -> None:
    play(lambda: strike_each(postgres_url, blow))


def test_wire_that_is_slow_at_any_statement_changes_nothing(postgres_url: str) -> None:
    play(lambda: strike_each(postgres_url, SLOWNESS, every=3))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("blow", SILENCES, ids=str)
def test_wire_that_is_silent_for_a_while_loses_nothing_that_was_told(blow: Blow, postgres_url: str) -> None:
    play(lambda: strike_each(postgres_url, blow, every=5))


@pytest.mark.long
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("blow", SILENCES, ids=str)
def test_wire_that_is_silent_at_any_statement_loses_nothing_that_was_told(
    blow: Blow, postgres_url: str
) -> None:
    play(lambda: strike_each(postgres_url, blow))


def test_answer_that_was_stored_without_word_of_it_is_told_as_it_is_stored(postgres_url: str) -> None:
    """The commit of the end is done, and the wire is cut before anybody hears of it."""

    async def scenario() -> None:
        async with before_postgres(postgres_url) as proxy, replica(postgres_url, through=proxy.url) as here:
            proxy.strike(Blow(Fault.CUT, Side.AFTER), containing=END)
            told = await here.ask("s")
            assert proxy.struck == [END]
            assert told.status is RunStatus.SUCCESS and told.answer and told.finished_at is not None
            assert [row["answer"] for row in await here.stored("s")] == [told.answer]
            assert len(await here.service.context.recall("s")) == 1
        await settled(postgres_url)

    play(scenario)


def test_failure_that_was_stored_without_word_of_it_is_told_as_it_is_stored(postgres_url: str) -> None:
    async def scenario() -> None:
        failing = raising(RuntimeError("broken"))
        async with (
            before_postgres(postgres_url) as proxy,
            replica(postgres_url, through=proxy.url, script=failing) as here,
        ):
            proxy.strike(Blow(Fault.CUT, Side.AFTER), containing=END)
            told = await here.ask("s")
            assert proxy.struck == [END]
            stored = [(row["status"], row["error_message"]) for row in await here.stored("s")]
            assert stored == [(told.status, told.error_message)] == [("FAILED", FAULT)]
        await settled(postgres_url)

    play(scenario)


def test_block_whose_end_was_stored_without_word_of_it_ends_as_if_it_had_been_heard(
    postgres_url: str,
) -> None:
    async def scenario() -> None:
        async with before_postgres(postgres_url) as proxy, casenotes.open(proxy.url) as notes:
            async with notes.run("Why?", session="s") as run:
                async with run.step("planner"):
                    await run.tool("logs.search", result="three lines")
                run.answer("Found it [T1]")
                proxy.strike(Blow(Fault.CUT, Side.AFTER), containing=END)
            assert proxy.struck == [END]
            trace = (await notes.trace("s", run.run_id)).run
            assert trace is not None and trace.status is RunStatus.SUCCESS
        await settled(postgres_url)

    play(scenario)


def test_run_whose_beginning_was_stored_without_word_of_it_is_refused_and_ended_by_its_lease(
    postgres_url: str,
) -> None:
    async def scenario() -> None:
        async with before_postgres(postgres_url) as proxy, replica(postgres_url, through=proxy.url) as here:
            proxy.strike(Blow(Fault.CUT, Side.AFTER), containing=START)
            with pytest.raises(LedgerUnavailable):
                await here.ask("s")
            assert [row["status"] for row in await here.stored("s")] == ["RUNNING"]
            await settled(postgres_url)
            assert [row["error_message"] for row in await here.stored("s")] == [ORPHANED]

    play(scenario)


@pytest.mark.usefixtures("impatient")
def test_end_that_is_never_stored_is_told_as_a_failure_and_ended_by_the_lease(postgres_url: str) -> None:
    """The wire is silent for longer than the end is tried."""

    async def scenario() -> None:
        async with before_postgres(postgres_url) as proxy, replica(postgres_url, through=proxy.url) as here:
            proxy.strike(Blow(Fault.HALT), containing=END)
            told = await here.ask("s")
            assert told.status is RunStatus.FAILED
            assert [row["status"] for row in await here.stored("s")] == ["RUNNING"]
            proxy.cut()
            proxy.heal()
            await settled(postgres_url)
            assert [row["error_message"] for row in await here.stored("s")] == [ORPHANED]

    play(scenario)


@pytest.mark.usefixtures("impatient")
def test_request_during_an_outage_is_answered_503_and_the_next_after_it_200(postgres_url: str) -> None:
    async def scenario() -> None:
        async with before_postgres(postgres_url) as proxy:
            settings = Settings(
                database_url=proxy.url, context_url="memory://", shutdown_grace=timedelta(seconds=0)
            )
            async with Backend("postgres", settings).serving() as here:
                await here.client.ask("one", "s")
                for outage in (proxy.cut, proxy.halt):
                    proxy.strike(Blow(Fault.CUT), containing="INSERT INTO diagnosis_run")
                    refused = await here.client.post("/api/chat", {"sessionId": "s", "question": "two"})
                    assert refused.status == 503 and int(refused.headers["Retry-After"]) > 0
                    outage()
                    statuses = [(await here.client.get("/api/chat/session/s/runs")).status for _ in range(2)]
                    assert set(statuses) <= {200, 503}, statuses
                    assert (statuses == [503, 503]) is (outage == proxy.halt)
                    proxy.heal()
                    assert (await here.client.ask("three", "s"))["success"]
                assert len((await here.client.runs("s")).data) == 3
        await settled(postgres_url)

    play(scenario)
