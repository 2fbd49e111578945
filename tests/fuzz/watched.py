"""Two replicas beside a model: how they are driven, and what is read of them after each step."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import datetime
from itertools import count
from typing import Any, TypeVar

from fuzz import seeing
from fuzz.fleet import Fleet, Replica, Stores
from fuzz.model import Record, Run
from hypothesis.stateful import RuleBasedStateMachine, invariant

from casenotes.core.errors import NotFound

T = TypeVar("T")

SESSIONS = ("s-1", "S-1", "s-2")


class Watched(RuleBasedStateMachine):
    """Has a loop of its own. Its rules take no precondition: what may be drawn must not depend on a race."""

    def __init__(self, stores: Stores) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.fleet = Fleet(stores)
        self.record = Record()
        self.held: dict[str, Replica] = {}
        self.words = count(1)
        self.sound = True
        self.last: str = SESSIONS[0]
        self.turn = 0
        self.do(self.fleet.start())

    def do(self, act: Coroutine[Any, Any, T]) -> T:
        self.sound = False
        done = self.loop.run(self._in_time(act))
        self.sound = True
        return done

    async def _in_time(self, act: Coroutine[Any, Any, T]) -> T:
        async with asyncio.timeout(120):
            return await act

    @property
    def now(self) -> datetime:
        return self.fleet.clock.now

    def replica(self, which: int) -> Replica:
        return self.fleet.living[which]

    def word(self, of: str) -> str:
        return f"{of} {next(self.words)}"

    def a_run(self, pick: int) -> Run:
        """One of the runs on record, rather a young one."""
        runs = sorted(self.record.runs.values(), key=lambda run: run.order, reverse=True)
        return runs[pick % len(runs)]

    def a_held(self, pick: int) -> tuple[str, Replica]:
        """One of the runs that a living replica executes, or believes that it does."""
        run_id = list(self.held)[pick % len(self.held)]
        return run_id, self.held[run_id]

    def let_go(self) -> None:
        """Forget the runs that are not executed any more."""
        self.held = {run_id: by for run_id, by in self.held.items() if by.executes(run_id)}

    def refused(self, error: type[Exception], act: Coroutine[Any, Any, object]) -> None:
        try:
            done = self.do(act)
        except error:
            self.sound = True
        else:
            raise AssertionError(f"was not refused: {done!r}")

    # What is read.

    def learn_cases(self) -> None:
        """The ids of new cases: a case keeps its id, and newer ones have higher ids."""
        seen = self.do(seeing.library(self.fleet.living[0].service.reading, 500))
        ids = {case["diagnosis_id"]: case["id"] for case in seen}
        new = [case for case in self.record.cases.values() if case.case_id is None]
        known = max((case.case_id for case in self.record.cases.values() if case.case_id), default=0)
        for case in new:
            case.case_id = ids.get(case.run.run_id)
            assert (case.case_id is not None) == case.active
            doubtful = case.run.run_id in self.record.doubtful
            assert case.case_id is None or case.case_id > known or doubtful

    @invariant()
    def what_was_touched_is_read_as_it_should_be(self) -> None:
        self.turn ^= 1
        self.do(self.see_session(self.replica(self.turn), self.last))
        assert not self.fleet.observer.faults

    async def see_session(self, by: Replica, session_id: str) -> None:
        reading = by.service.reading
        if session_id not in self.record.sessions:
            for read in (reading.session, reading.trace, reading.runs):
                await _is_not_found(read(session_id))
            return
        runs = self.record.of(session_id)
        assert seeing.session(await reading.session(session_id)) == self.record.session(session_id, self.now)
        assert seeing.trace(await reading.trace(session_id)) == self.record.trace(runs[0], self.now)
        seen = await seeing.runs(reading, session_id, 1 + len(runs) // 2)
        assert seen == [self.record.summary(run) for run in runs]

    async def see_everything(self, by: Replica) -> None:
        reading = by.service.reading
        for session_id in SESSIONS:
            await self.see_session(by, session_id)
            for run in self.record.runs.values():
                if run.session_id == session_id:
                    seen = seeing.trace(await reading.trace(session_id, run.run_id))
                    assert seen == self.record.trace(run, self.now)
                else:
                    await _is_not_found(reading.trace(session_id, run.run_id))
        overviews = await seeing.sessions(reading, 2)
        expected = [self.record.overview(session_id, self.now) for session_id in self.record.sessions]
        assert sorted(overviews, key=_name) == sorted(expected, key=_name)
        active = [one["last_active_at"] for one in overviews]
        assert active == sorted(active, reverse=True)
        assert await seeing.library(reading, 2) == self.record.library()
        for session_id, session in self.record.sessions.items():
            recalled = await by.service.context.recall(session_id)
            assert [(pair.question, pair.answer) for pair in recalled] == session.conversation

    def teardown(self) -> None:
        try:
            if self.sound:
                for by in self.fleet.living:
                    self.do(self.see_everything(by))
        finally:
            try:
                self.loop.run(self.fleet.close())
                left = asyncio.all_tasks(self.loop.get_loop())
                assert not left, left
            finally:
                self.loop.close()


def _name(one: dict[str, Any]) -> Any:
    return one["session_id"]


async def _is_not_found(read: Coroutine[Any, Any, object]) -> None:
    try:
        seen = await read
    except NotFound:
        return
    raise AssertionError(f"was found: {seen!r}")
