"""Times: aware, in UTC, exact to the microsecond, on every record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from attrs import evolve

from casenotes.core.model import ChatSession, Feedback
from casenotes.ports.contract.runs import full_run
from casenotes.ports.contract.stage import (
    NAIVE,
    add_run,
    add_runs,
    answered,
    case_of,
    chat_session,
    committed,
    end,
    key_named,
    on_fresh_ledger,
    only,
    put_cases,
    read_run,
    read_session,
    started,
)
from casenotes.ports.contract.writes import WRITES, all_there_is, prepare
from casenotes.ports.ledger import Ledger

EAST = timezone(timedelta(hours=5, minutes=30))
WEST = timezone(-timedelta(hours=11))
MOMENTS = (
    datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    datetime(2026, 1, 2, 3, 4, 5, 0, tzinfo=UTC),
    datetime(2026, 1, 2, 3, 4, 5, 1, tzinfo=UTC),
    datetime(2026, 1, 2, 3, 4, 5, 999999, tzinfo=EAST),
    datetime(2026, 1, 1, 23, 59, 59, 999999, tzinfo=WEST),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1999, 12, 31, 23, 59, 59, 100000, tzinfo=UTC),
    datetime(2400, 2, 29, 12, tzinfo=UTC),
)
MOMENT = pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.isoformat())


class TimesContract:
    @MOMENT
    @on_fresh_ledger
    async def test_times_of_a_run_come_back_exact_and_in_utc(self, ledger: Ledger, moment: datetime) -> None:
        times = ("created_at", "updated_at", "finished_at", "feedback_at", "lease_expires_at")
        moments: dict[str, Any] = dict.fromkeys(times, moment)
        await add_run(ledger, evolve(full_run(), **moments))
        stored = await read_run(ledger, "s", "r")
        for name in times:
            assert_same_moment_in_utc(getattr(stored, name), moment)

    @MOMENT
    @on_fresh_ledger
    async def test_times_of_all_else_come_back_exact_and_in_utc(
        self, ledger: Ledger, moment: datetime
    ) -> None:
        run = await add_run(ledger, started())
        async with committed(ledger) as work:
            await work.sessions.ensure(ChatSession("t", moment, moment, expires_at=moment))
            await work.journal.add_step(run.step(1, "planner", moment))
            await work.journal.add_tool(run.tool_call(1, "logs.search", moment))
            await work.keys.claim(evolve(key_named("k"), created_at=moment))
        await put_cases(ledger, evolve(case_of("r"), created_at=moment, updated_at=moment))
        session = await read_session(ledger, "t")
        async with ledger.view() as view:
            step = only(await view.journal.steps("s", "r"))
            tool = only(await view.journal.tools("s", "r"))
            case = await view.cases.of_run("r")
        async with ledger.work() as work:
            key = await work.keys.claim(key_named("k"))
        assert case is not None
        assert key is not None
        for stored in (
            session.created_at,
            session.last_active_at,
            session.expires_at,
            step.created_at,
            tool.created_at,
            case.created_at,
            case.updated_at,
            key.created_at,
        ):
            assert_same_moment_in_utc(stored, moment)

    @MOMENT
    @on_fresh_ledger
    async def test_times_given_to_a_change_come_back_exact_and_in_utc(
        self, ledger: Ledger, moment: datetime
    ) -> None:
        first = MOMENTS[5]
        await add_run(ledger, evolve(started(), created_at=first, updated_at=first, lease_expires_at=first))
        await put_cases(ledger, case_of("r"))
        async with committed(ledger) as work:
            await work.sessions.ensure(ChatSession("t", MOMENTS[5], MOMENTS[5]))
            await work.sessions.use(ChatSession("t", moment, moment, expires_at=moment))
            await work.runs.set_feedback("s", "r", Feedback("useful", None, moment))
            await work.runs.renew([("s", "r")], owner="alpha", until=moment)
            await work.cases.withdraw("r", at=moment)
        session, run = await read_session(ledger, "t"), await read_run(ledger, "s", "r")
        async with ledger.view() as view:
            case = await view.cases.of_run("r")
        assert case is not None
        for stored in (
            session.last_active_at,
            session.expires_at,
            run.feedback_at,
            run.updated_at,
            run.lease_expires_at,
            case.updated_at,
        ):
            assert_same_moment_in_utc(stored, moment)

    @on_fresh_ledger
    async def test_runs_are_ordered_by_the_moment_and_not_by_the_clock_on_the_wall(
        self, ledger: Ledger
    ) -> None:
        noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
        await add_runs(
            ledger,
            evolve(started("r-1"), created_at=noon.astimezone(EAST)),
            evolve(started("r-3"), created_at=(noon + timedelta(microseconds=2)).astimezone(WEST)),
            evolve(started("r-2"), created_at=noon + timedelta(microseconds=1)),
        )
        async with ledger.view() as view:
            page = await view.runs.page("s", before=None, limit=9)
            latest = await view.runs.latest("s")
        assert [summary.run_id for summary in page] == ["r-3", "r-2", "r-1"]
        assert latest is not None
        assert latest.run_id == "r-3"

    @on_fresh_ledger
    async def test_naive_time_is_refused_and_nothing_is_written(self, ledger: Ledger) -> None:
        await prepare(ledger)
        before = await all_there_is(ledger)
        for write in WRITES:
            if write.takes_time:
                with pytest.raises(ValueError):
                    async with committed(ledger) as work:
                        await write.call(work, NAIVE)
                assert await all_there_is(ledger) == before, write.name

    @on_fresh_ledger
    async def test_naive_expiry_of_a_session_is_refused(self, ledger: Ledger) -> None:
        await prepare(ledger)
        before = await all_there_is(ledger)
        with pytest.raises(ValueError):
            async with committed(ledger) as work:
                await work.sessions.use(evolve(chat_session("s"), expires_at=NAIVE))
        assert await all_there_is(ledger) == before
        with pytest.raises(ValueError):
            async with committed(ledger) as work:
                await end(work, answered(started()), expires_at=NAIVE)
        assert await all_there_is(ledger) == before


def assert_same_moment_in_utc(stored: datetime | None, moment: datetime) -> None:
    assert stored is not None
    assert stored == moment
    assert stored.utcoffset() == timedelta(0), f"{stored} is not in UTC"
