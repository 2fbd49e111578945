"""A process is killed at every moment of a run's life: what it told is stored, the rest is ended by another process."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from faults.lives import KILLED, LEASE, LIVES, Life, Nursery, nursery
from faults.scene import MovingClock, Replica, play, replica
from support.invariants import assert_sound

from casenotes.core.service.leases import ORPHANED


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery() as started:
        yield started


async def require_what_was_told(survivor: Replica, session_id: str, told: dict[str, Any]) -> None:
    """The run, once it has been ended by its lease where it had not ended."""
    stored = await survivor.stored(session_id)
    if told.get("status") == "erased":
        assert stored == []
        return
    assert len(stored) <= 1
    if told.get("status") == "SUCCESS" and stored:  # else it was being erased
        assert (stored[0]["status"], stored[0]["error_message"]) == ("SUCCESS", None)
        assert (stored[0]["step_count"], stored[0]["tool_call_count"]) == (1, 1)
    if told.get("feedback") == "useful" and stored:
        assert stored[0]["feedback"] == "useful"
    assert [run["error_message"] for run in stored if run["status"] == "FAILED"] in ([], [ORPHANED])


async def kill_at_moments(children: Nursery, life: str, url: str, context: str, every: int = 1) -> list[str]:
    """The moments of a life, each, or every so many, met in a process of its own that was killed there."""
    met = list[str]()
    later = MovingClock(LEASE + timedelta(seconds=1))
    async with replica(url, clock=later) as survivor:

        async def live(session_id: str, killed_at: int) -> dict[str, Any]:
            told = children.live(Life(life, url, context, session_id, killed_at))
            await survivor.service.leases.tick()
            await require_what_was_told(survivor, session_id, told)
            await assert_sound(url)
            return told

        whole = await live("whole", 0)
        assert whole["ended"] == 0
        for moment in range(1, int(whole["moments"]) + 1, every):
            told = await live(f"s-{moment}", moment)
            assert told["ended"] == KILLED, told
            met.append(told["moment"])
    return met


RECORDING = ("before ledger.record", "before ledger.end.commit", "after ledger.end.commit")
MOMENTS = {
    "chat": (
        "before ledger.start",
        "before ledger.end.runs.end",
        "before ledger.end.cases.put",
        *RECORDING,
    ),
    "library": (
        "before ledger.start",
        "before ledger.end.runs.lock_to_end",
        "before ledger.end.runs.end",
        *RECORDING,
    ),
    "erase": ("before ledger.work.erase", "before ledger.work.commit", "after ledger.work.commit"),
}
"""Some of those at which a process must have been killed."""


@pytest.mark.parametrize("life", LIVES)
def test_process_killed_at_any_moment_leaves_nothing_half_done_in_a_file(
    children: Nursery, life: str, sqlite_url: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        met = await kill_at_moments(children, life, sqlite_url, f"sqlite:///{tmp_path / 'context.db'}")
        assert {*MOMENTS[life], "after all"} <= set(met)

    play(scenario)


@pytest.mark.parametrize("life", LIVES)
def test_process_killed_at_one_moment_or_another_leaves_nothing_half_done_in_postgres(
    children: Nursery, life: str, postgres_url: str, fresh_redis: str
) -> None:
    play(lambda: kill_at_moments(children, life, postgres_url, fresh_redis, every=5))


@pytest.mark.long
@pytest.mark.parametrize("life", LIVES)
def test_process_killed_at_any_moment_leaves_nothing_half_done_in_postgres(
    children: Nursery, life: str, postgres_url: str, fresh_redis: str
) -> None:
    play(lambda: kill_at_moments(children, life, postgres_url, fresh_redis))
