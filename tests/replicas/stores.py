"""The stores that replicas share, and what the tests look for in them."""

from __future__ import annotations

import json
from typing import Any

from attrs import frozen
from redis.asyncio import Redis
from support.postgres import rows


@frozen
class Stores:
    """A ledger's and a conversation store's URL."""

    ledger: str
    context: str

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a service process that uses them."""
        return {"database_url": self.ledger, "context_url": self.context}

    async def rows(self, query: str, **values: object) -> list[dict[str, Any]]:
        """What a query finds in the ledger's database itself."""
        return await rows(self.ledger, query, **values)

    async def ended_runs(self) -> list[dict[str, Any]]:
        """All runs, in the order in which they were made; none may be running any more."""
        runs = await self.rows("select * from diagnosis_run order by id")
        assert "RUNNING" not in {run["status"] for run in runs}
        return runs

    async def conversation(self, session_id: str) -> list[list[str]]:
        """The remembered pairs, as Redis has them."""
        async with Redis.from_url(self.context, decode_responses=True) as server:
            kept = await server.lrange(f"casenotes:{{{session_id}}}:pairs", 0, -1)
        return [json.loads(pair) for pair in kept]

    async def require_unmixed(self) -> None:
        """Every step and tool call is of one run, of that run's session, numbered without a gap, and counted."""
        for table, count in (("agent_step", "step_count"), ("tool_invocation", "tool_call_count")):
            mixed = await self.rows(
                f"select * from {table} as row left join diagnosis_run as run using (run_id)"
                " where run.session_id is distinct from row.session_id"
            )
            assert mixed == []
            wrong = await self.rows(
                f"select run.run_id, run.{count}, array_agg(row.sequence order by row.sequence) as numbers"
                f" from diagnosis_run as run left join {table} as row using (session_id, run_id)"
                f" group by run.run_id, run.{count}"
                f" having coalesce(array_agg(row.sequence order by row.sequence) filter (where row.id is not null),"
                f" '{{}}') is distinct from array(select generate_series(1, run.{count}))"
            )
            assert wrong == []
