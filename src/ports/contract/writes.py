"""Every way to write, as data: what must hold for all of them is tested on each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from attrs import evolve, frozen

from casenotes.core.model import Feedback
from casenotes.ports.contract.stage import (
    add_runs,
    answered,
    at,
    case_of,
    chat_session,
    committed,
    end,
    end_run,
    holder_of,
    key_named,
    picture,
    put_cases,
    started,
)
from casenotes.ports.ledger import Ledger, UnitOfWork

Call = Callable[[UnitOfWork, datetime], Awaitable[object]]


@frozen
class Write:
    """One method of the port that changes something on the stage that ``prepare`` sets."""

    name: str
    call: Call
    takes_time: bool = True


WRITES = (
    Write(
        "sessions.ensure", lambda work, at: work.sessions.ensure(evolve(chat_session("s-new"), created_at=at))
    ),
    Write("sessions.use", lambda work, at: work.sessions.use(evolve(chat_session("s"), last_active_at=at))),
    Write("runs.add", lambda work, at: work.runs.add(evolve(started("r-new"), created_at=at))),
    Write("runs.end", lambda work, at: end(work, evolve(answered(started()), finished_at=at))),
    Write(
        "runs.set_context_degraded",
        lambda work, _: work.runs.set_context_degraded("s", "r"),
        takes_time=False,
    ),
    Write(
        "runs.set_feedback", lambda work, at: work.runs.set_feedback("s", "r", Feedback("useful", None, at))
    ),
    Write("runs.renew", lambda work, at: work.runs.renew([("s", "r")], owner="alpha", until=at)),
    Write("journal.add_step", lambda work, at: work.journal.add_step(started().step(2, "executor", at))),
    Write(
        "journal.add_tool", lambda work, at: work.journal.add_tool(started().tool_call(2, "logs.search", at))
    ),
    Write(
        "cases.put", lambda work, at: work.cases.put(evolve(case_of("r-done"), answer="new", updated_at=at))
    ),
    Write("cases.withdraw", lambda work, at: work.cases.withdraw("r-done", at=at)),
    Write("keys.claim", lambda work, at: work.keys.claim(evolve(key_named("k"), created_at=at))),
    Write("erase", lambda work, at: work.erase("s", at=at)),
)

LATER = at(500)


async def prepare(ledger: Ledger) -> None:
    """A session with an ended run that has a case, and a running run with a step and a tool call."""
    done, running = await add_runs(ledger, started("r-done"), started("r"))
    await end_run(ledger, answered(done))
    await put_cases(ledger, case_of("r-done"))
    async with committed(ledger) as work:
        await work.journal.add_step(running.step(1, "planner", at(1)))
        await work.journal.add_tool(running.tool_call(1, "logs.search", at(1)))


async def all_there_is(ledger: Ledger) -> tuple[object, ...]:
    """What any of the writes would change, if it were written."""
    return await picture(ledger, "s"), await picture(ledger, "s-new"), await holder_of(ledger, "k")
