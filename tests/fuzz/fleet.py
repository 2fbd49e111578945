"""Replicas over the same stores, with a clock and diagnosticians that the test leads by hand."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from attrs import Factory, define, evolve, field, frozen
from fuzz.model import LEASE, TTL, WINDOW
from redis import Redis
from support.postgres import rows
from support.service import Backend

from casenotes.adapters.memory import MemoryLedger
from casenotes.adapters.sql.tables import metadata
from casenotes.core.model import DiagnosisRun, MessagePair
from casenotes.core.service.conducting import Limits
from casenotes.core.service.service import Service
from casenotes.core.service.stream import Execution
from casenotes.entrypoints.bootstrap import open_context_at, open_ledger_at, upgrade
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import AgentEvent, Answered, Enquiry
from casenotes.ports.context import ContextStore
from casenotes.ports.ledger import Ledger

PATIENCE = 60
T0 = datetime(2026, 3, 1, tzinfo=UTC)


@define
class ManualClock:
    """Stands still until it is moved, forward or back."""

    now: datetime = T0

    def __call__(self) -> datetime:
        return self.now


@frozen
class Quiet:
    """An observer that fails the test for every fault of the service's own."""

    faults: list[str] = field(factory=list)

    def started(self, run: DiagnosisRun) -> None: ...

    def ended(self, run: DiagnosisRun) -> None: ...

    def faulted(self, session_id: str, run_id: str | None, what: str, fault: BaseException) -> None:
        if not isinstance(fault, Broken):
            self.faults.append(f"{what}: {fault!r}")


class Broken(Exception):
    """What a diagnostician raises that is told to."""


@define(eq=False)
class Led:
    """A run under way: it waits for the next event it is given."""

    conversation: tuple[MessagePair, ...]
    waits: asyncio.Event = field(factory=asyncio.Event)
    events: asyncio.Queue[AgentEvent | Broken] = field(factory=asyncio.Queue)


@define
class Puppets:
    """A ``Diagnostician`` whose every run is led by the test."""

    led: dict[str, Led] = field(factory=dict)

    async def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        led = self.led[enquiry.run_id] = Led(tuple(enquiry.conversation))
        while True:
            led.waits.set()
            event = await led.events.get()
            if isinstance(event, Broken):
                raise event
            yield event
            if isinstance(event, Answered):
                return


@define(eq=False)
class Replica:
    """One process of the fleet, as far as the others can tell."""

    service: Service
    puppets: Puppets
    owner: str
    executions: dict[str, Execution] = field(factory=dict)

    def executes(self, run_id: str) -> bool:
        return run_id in {running for _, running in self.service.executions.running()}

    async def settled(self, run_id: str) -> None:
        """Wait until the run waits for its next event, or is not executed any more."""
        async with asyncio.timeout(PATIENCE):
            while self.executes(run_id):
                led = self.puppets.led.get(run_id)
                if led is not None and led.waits.is_set():
                    return
                await asyncio.sleep(0)
            if run_id in self.executions:  # its pair is in the conversation then
                await self.executions[run_id].outcome()

    async def lead(self, run_id: str, *events: AgentEvent | Broken) -> None:
        """Give the run these events, and wait for what comes of each."""
        for event in events:
            led = self.puppets.led[run_id]
            led.waits.clear()
            led.events.put_nowait(event)
            await self.settled(run_id)


@define
class Stores:
    """Makes empty stores for each example, and opens them as often as there are replicas."""

    backend: Backend
    folder: Path
    _numbers: Iterator[int] = field(factory=count)
    _settings: Settings | None = None
    _memory: tuple[Ledger, ContextStore] | None = None

    async def empty(self) -> None:
        """Begin anew with nothing on record."""
        number = next(self._numbers)
        self._settings = evolve(self.backend.settings, context_window=WINDOW, context_ttl=timedelta(days=365))
        self._memory = None
        match self.backend.name:
            case "sqlite":
                await self._copy_file(f"{number}")
            case "postgres":
                tables = ", ".join(table.name for table in metadata.sorted_tables)
                await rows(self.backend.settings.database_url, f"truncate {tables} restart identity")
                with Redis.from_url(self.backend.settings.context_url) as server:
                    server.flushdb()

    async def _copy_file(self, name: str) -> None:
        assert self._settings is not None
        template = self.folder / "template.db"
        if not template.exists():
            await upgrade(f"sqlite+aiosqlite:///{template}")
        ledger, context = self.folder / f"ledger-{name}.db", self.folder / f"context-{name}.db"
        shutil.copy(template, ledger)
        self._settings = evolve(
            self._settings,
            database_url=f"sqlite+aiosqlite:///{ledger}",
            context_url=f"sqlite:///{context}",
        )

    async def open(self, clock: ManualClock) -> tuple[Ledger, ContextStore]:
        """The stores, as one more process opens them."""
        assert self._settings is not None
        if self.backend.name == "memory":
            if self._memory is None:
                self._memory = (MemoryLedger(), open_context_at(self._settings, clock))
            return self._memory
        ledger = await open_ledger_at(self._settings.database_url, migrate_first=False)
        return ledger, open_context_at(self._settings, clock)


@define(eq=False)
class Fleet:
    """Two living replicas, and those that died."""

    stores: Stores
    clock: ManualClock = field(factory=ManualClock)
    observer: Quiet = field(factory=Quiet)
    living: list[Replica] = field(factory=list)
    dead: list[Replica] = field(factory=list)
    _names: Iterator[int] = Factory(count)

    async def start(self) -> None:
        await self.stores.empty()
        self.living = [await self.join(), await self.join()]

    async def join(self) -> Replica:
        """One more replica. The names that it gives do not sort by age."""
        ledger, context = await self.stores.open(self.clock)
        puppets = Puppets()
        service = Service.over(
            ledger=ledger,
            context=context,
            diagnostician=puppets,
            clock=self.clock,
            new_id=lambda: hashlib.sha256(f"{next(self._names)}".encode()).hexdigest()[:16],
            observer=self.observer,
            limits=Limits(context_timeout=timedelta(seconds=PATIENCE), max_running=10_000),
            lease=LEASE,
            context_ttl=TTL,
        )
        return Replica(service, puppets, service.recorder.owner)

    async def replace(self, which: int) -> None:
        """Let a replica die without a word, and another take its place."""
        self.dead.append(self.living[which])
        self.living[which] = await self.join()

    async def close(self) -> None:
        for replica in (*self.living, *self.dead):
            await replica.service.executions.close(timedelta(0))
        for replica in (*self.living, *self.dead):
            await replica.service.ledger.close()
            await replica.service.context.close()
