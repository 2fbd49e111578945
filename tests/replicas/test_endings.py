"""Replicas that are killed, and replicas that are asked to go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replicas.stores import Stores
from support.http import client_of
from support.postgres import until
from support.process import Process, service_process

from casenotes.core.service.conducting import INTERRUPTED
from casenotes.core.service.leases import ORPHANED

LEASE = "3"
"""Long enough for a process that lives to renew in time on a machine that is busy."""


async def ask(replica: Process, session_ids: Sequence[str]) -> list[dict[str, Any] | BaseException]:
    """Ask in each session; gives the answers, and what was raised where the replica went away."""
    async with client_of(replica.url) as client:
        return await asyncio.gather(
            *(client.ask("q", session_id) for session_id in session_ids), return_exceptions=True
        )


def names(prefix: str) -> list[str]:
    return [f"{prefix}-{number}" for number in range(20)]


def test_runs_of_a_killed_replica_fail_with_a_reason_and_those_of_the_other_succeed(
    stores: Stores, tmp_path: Path
) -> None:
    async def scenario(doomed: Process, survivor: Process) -> None:
        lost = asyncio.create_task(ask(doomed, names("doomed")))
        kept = asyncio.create_task(ask(survivor, names("kept")))
        await until(stores.ledger, "select 1 from tool_invocation", 40)
        doomed.kill()
        assert all(isinstance(answer, Exception) for answer in await lost)
        await until(stores.ledger, "select 1 from diagnosis_run where status = 'RUNNING'", 20)
        survivor.let_runs_end()
        assert all(isinstance(answer, dict) and answer["success"] for answer in await kept)
        runs = await stores.ended_runs()
        ends = {(run["session_id"].partition("-")[0], run["status"], run["error_message"]) for run in runs}
        assert len(runs) == 40
        assert ends == {("doomed", "FAILED", ORPHANED), ("kept", "SUCCESS", None)}
        assert {(run["step_count"], run["tool_call_count"]) for run in runs} == {(1, 1)}
        assert {run["lease_owner"] for run in runs} == {None}
        await stores.require_unmixed()

    (tmp_path / "doomed").mkdir()
    (tmp_path / "survivor").mkdir()
    with (
        service_process(tmp_path / "doomed", run_lease=LEASE, **stores.settings) as doomed,
        service_process(tmp_path / "survivor", run_lease=LEASE, **stores.settings) as survivor,
    ):
        asyncio.run(scenario(doomed, survivor))


def test_replica_that_is_asked_to_go_finishes_what_it_runs(stores: Stores, tmp_path: Path) -> None:
    async def scenario(replica: Process) -> None:
        asked = asyncio.create_task(ask(replica, names("s")[:5]))
        await until(stores.ledger, "select 1 from tool_invocation", 5)
        replica.terminate()
        replica.let_runs_end()
        assert all(isinstance(answer, dict) and answer["success"] for answer in await asked)

    with service_process(tmp_path, shutdown_grace="30", **stores.settings) as replica:
        asyncio.run(scenario(replica))
        assert replica.exit_status() == 0
    runs = asyncio.run(stores.ended_runs())
    assert {run["status"] for run in runs} == {"SUCCESS"}
    assert asyncio.run(stores.conversation("s-0")) == [["q", "found [T1]\n"]]


def test_replica_that_is_asked_to_go_ends_what_does_not_finish_in_time(
    stores: Stores, tmp_path: Path
) -> None:
    async def scenario(replica: Process) -> None:
        asked = asyncio.create_task(ask(replica, names("s")[:5]))
        await until(stores.ledger, "select 1 from tool_invocation", 5)
        replica.terminate()
        for answer in await asked:
            assert isinstance(answer, dict) and answer["errorMessage"] == INTERRUPTED[0]

    with service_process(tmp_path, shutdown_grace="0.1", **stores.settings) as replica:
        asyncio.run(scenario(replica))
        assert replica.exit_status() == 0
    runs = asyncio.run(stores.ended_runs())
    assert {(run["status"], run["error_message"]) for run in runs} == {("FAILED", INTERRUPTED[0])}
