"""Processes that live until a chosen moment and are killed there: ``python -m faults.lives``.

It reads one order a line from its standard input, forks a child that lives as ordered, and answers with a line that
says how far the child came and what it had told by then. A moment is before an operation on a port, or after a commit:
after any other, the stores are as they are before the next.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any, NoReturn

from attrs import asdict, define, frozen
from support.process import TESTS

from casenotes.core.service.conducting import Limits
from casenotes.core.service.service import Service
from casenotes.core.service.stream import Order
from casenotes.core.words import AgentFlow
from casenotes.entrypoints.ambient import new_id, utc_now
from casenotes.entrypoints.bootstrap import open_context_at, open_ledger_at
from casenotes.entrypoints.library import Notes
from casenotes.entrypoints.observing import LoggingObserver
from casenotes.entrypoints.open_runs import OpenRuns
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import AgentEvent, Answered, Chunk, Enquiry, StepTaken, ToolCalled
from casenotes.ports.through_work import ending

LEASE = timedelta(seconds=30)
KILLED = -signal.SIGKILL
SECONDS = 60
"""The longest that a life may take."""


@frozen
class Life:
    """Which life to live, in which session, and at which moment, counted from 1, to be killed."""

    name: str
    database_url: str
    context_url: str
    session_id: str
    killed_at: int


@define
class Fuse:
    """Kills this process at its moment. What it writes to the pipe is what others know of it."""

    killed_at: int
    pipe: int
    moment: int = 0
    lit: bool = True

    def tell(self, what: str, value: str) -> None:
        os.write(self.pipe, f"{json.dumps([what, value])}\n".encode())

    def burn(self, where: str) -> None:
        self.moment += self.lit
        if self.lit and self.moment == self.killed_at:
            self.tell("moment", where)
            os.kill(os.getpid(), signal.SIGKILL)


class Fused:
    """A port whose operations, and those of its parts, each burn the fuse."""

    def __init__(self, port: Any, fuse: Fuse, name: str) -> None:
        self._port, self._fuse, self._name = port, fuse, name

    def __getattr__(self, name: str) -> Any:
        found, where = getattr(self._port, name), f"{self._name}.{name}"
        if name in ("work", "view"):
            return lambda: self._block(found, where)
        if name == "transact":
            return lambda body: self._transact(found, body, where)
        if where == "ledger.end":  # step by step, as each store does it for a run that ends alone
            return lambda *asked: self._transact(self._port.transact, ending(*asked), where)
        if iscoroutinefunction(found):
            return self._operation(found, where)
        return Fused(found, self._fuse, where)

    @asynccontextmanager
    async def _block(self, opened: Callable[[], Any], where: str) -> AsyncIterator[Fused]:
        async with opened() as block:
            yield Fused(block, self._fuse, where)

    async def _transact(self, transact: Callable[..., Awaitable[Any]], body: Any, where: str) -> Any:
        """Each operation in the body, the moment before the commit, and the one after it."""

        async def fused(work: object) -> Any:
            result = await body(Fused(work, self._fuse, where))
            self._fuse.burn(f"before {where}.commit")
            return result

        result = await transact(fused)
        self._fuse.burn(f"after {where}.commit")
        return result

    def _operation(self, act: Callable[..., Awaitable[Any]], where: str) -> Callable[..., Awaitable[Any]]:
        async def operation(*values: Any, **named: Any) -> Any:
            self._fuse.burn(f"before {where}")
            result = await act(*values, **named)
            if where.endswith("commit"):
                self._fuse.burn(f"after {where}")
            return result

        return operation


@frozen
class Rating:
    """A diagnostician whose run is rated useful while it is under way."""

    fuse: Fuse
    rate: list[Callable[[Enquiry], Awaitable[None]]]

    async def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        yield StepTaken("assistant", input=enquiry.question, output="look")
        yield ToolCalled("logs.search", {"q": enquiry.question}, {"lines": 3})
        await self.rate[0](enquiry)
        yield Chunk("Found it [T1]\n")
        self.fuse.burn("before the answer")
        yield Answered()


async def chat(service: Service, fuse: Fuse, session_id: str) -> None:
    """Asked and rated useful meanwhile, then rated otherwise."""
    execution = await service.executions.submit(Order(session_id, "Why?", AgentFlow.CHAT))
    run = (await execution.outcome()).run
    fuse.tell("status", run.status)
    receipt = await service.feedback.give(session_id, "not_useful", run_id=run.run_id)
    fuse.tell("feedback", receipt.feedback)
    await service.feedback.give(session_id, "useful")
    fuse.tell("feedback", "useful")


async def library(service: Service, fuse: Fuse, session_id: str) -> None:
    """A run that is recorded by the code that executes it."""
    open_runs = OpenRuns(LoggingObserver(), service.executions.conductor.remember)
    notes = Notes(service, open_runs, False)
    async with notes.run("Why?", session=session_id, flow="STATE_GRAPH") as run:
        fuse.burn("in the block")
        run.graph.entered("planner")
        async with run.step("planner") as step:
            step.output = "look"
            await run.tool("logs.search", {"q": "why"}, result="3 lines")
        run.answer("Found it [T1]")
        fuse.burn("before the block's end")
    fuse.tell("status", "SUCCESS")


async def erase(service: Service, fuse: Fuse, session_id: str) -> None:
    """Erased, having been asked and rated."""
    fuse.lit = False
    await chat(service, fuse, session_id)
    fuse.lit = True
    await service.conversations.erase(session_id)
    fuse.tell("status", "erased")


LIVES = {life.__name__: life for life in (chat, library, erase)}


async def live(life: Life, fuse: Fuse) -> None:
    settings = Settings(database_url=life.database_url, context_url=life.context_url)
    ledger = await open_ledger_at(settings.database_url, migrate_first=False)
    context = open_context_at(settings, utc_now)
    raters: list[Callable[[Enquiry], Awaitable[None]]] = []
    fused: dict[str, Any] = {
        "ledger": Fused(ledger, fuse, "ledger"),
        "context": Fused(context, fuse, "context"),
    }
    service = Service.over(
        **fused,
        diagnostician=Rating(fuse, raters),
        clock=utc_now,
        new_id=new_id,
        observer=LoggingObserver(),
        limits=Limits(),
        lease=LEASE,
        context_ttl=timedelta(days=1),
    )

    async def rate(enquiry: Enquiry) -> None:
        await service.feedback.give(enquiry.session_id, "useful", run_id=enquiry.run_id)

    raters.append(rate)
    await LIVES[life.name](service, fuse, life.session_id)
    fuse.burn("after all")
    await context.close()
    await ledger.close()


def fork(life: Life) -> dict[str, object]:
    """Live in a child; what it told, and how it ended."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        _live_and_leave(life, Fuse(life.killed_at, writable))
    os.close(writable)
    with os.fdopen(readable) as pipe:
        told: dict[str, object] = dict(json.loads(line) for line in pipe)
    _, status = os.waitpid(child, 0)
    return told | {"ended": os.waitstatus_to_exitcode(status)}


def _live_and_leave(life: Life, fuse: Fuse) -> NoReturn:
    status = 1
    signal.alarm(SECONDS)
    try:
        asyncio.run(live(life, fuse))
        fuse.tell("moments", str(fuse.moment))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


@frozen
class Nursery:
    """The process that forks, as a test sees it."""

    process: subprocess.Popen[str]

    def live(self, life: Life) -> dict[str, Any]:
        """Have a life lived; what it told, and how it ended."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(asdict(life)), file=self.process.stdin, flush=True)
        told = json.loads(self.process.stdout.readline())
        assert isinstance(told, dict)
        return told


@contextmanager
def nursery() -> Iterator[Nursery]:
    """Start it, and see to it that it is gone afterwards."""
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    command, environ = [sys.executable, "-m", __name__], {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, text=True
    ) as process:
        yield Nursery(process)


if __name__ == "__main__":
    for adapter in ("sqlite", "postgres", "context.redis"):  # once, and not in each child
        import_module(f"casenotes.adapters.{adapter}")
    for line in sys.stdin:
        print(json.dumps(fork(Life(**json.loads(line)))), flush=True)
