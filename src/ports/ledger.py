"""The ledger: where sessions, runs, steps, tool calls, feedback and cases are kept. The docstrings are the contract.

Every sentence below is held by a test of ``casenotes.ports.contract``, which all adapters pass.

General promises:

- What is given is copied in and what is returned is the caller's own: changing either changes nothing stored.
- Session ids, run ids and keys are opaque and compared exactly: no trimming, no folding of case.
- A run, step or tool call is always addressed with its session id; one of another session is not there.
- Runs have a total order: ``(created_at, id)``, where ``id`` is assigned on insertion, rises, and is never
  reused, not even after the newest run was erased. Newest first means descending in both.
- Times are aware, in UTC, exact to the microsecond; a naive time is refused with ``ValueError`` and writes nothing.
- Text and JSON come back equal to what was stored, and of the same type: the string ``"[1]"`` stays a string, the
  list ``[1]`` a list. (What cannot be stored everywhere was settled before, in ``core.text``.)
- Failures of the database are ``LedgerUnavailable``; no error carries the words of a driver.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol, TypeAlias, TypeVar

from casenotes.core.ending import Decide
from casenotes.core.model import (
    AgentStep,
    Case,
    ChatSession,
    DiagnosisRun,
    Feedback,
    HistoricalSession,
    IdempotencyKey,
    RunKey,
    ToolInvocation,
)
from casenotes.core.seal import ChainHead, RunSeal
from casenotes.core.views import Erasure, HistoricalTrace, RunSummary, SessionOverview, StoredTrace, Tombstone

T = TypeVar("T")


class SessionsView(Protocol):
    """Reads chat sessions."""

    async def get(self, session_id: str) -> ChatSession | None:
        """The session with exactly this id."""
        ...

    async def page(self, *, query: str | None, before: str | None, limit: int) -> Sequence[SessionOverview]:
        """At most ``limit`` sessions, latest active first: by ``last_active_at`` descending, then ``session_id``
        ascending in the store's order.

        ``query`` keeps the sessions whose id, or the question of any of whose runs, contains it, case aside for
        ASCII letters at least, with no character of it special. ``before`` continues after that session; raises
        ``SessionNotFound`` when there is no such session. Each carries the number of its runs and its latest run's
        id and question.
        """
        ...

    async def tombstones(self, session_id: str) -> Sequence[Tombstone]:
        """What is remembered of the sessions of this id that were erased, oldest first."""
        ...

    async def idle(self, *, since: datetime, limit: int) -> Sequence[str]:
        """The ids of at most ``limit`` sessions without a RUNNING run that were last active before ``since``, the
        longest idle first."""
        ...


class Sessions(SessionsView, Protocol):
    """Reads and writes chat sessions."""

    async def ensure(self, session: ChatSession) -> None:
        """Store the session unless its id is there already; an existing row is left as it is.

        Either way the row stays until this unit of work ends: whoever would erase it waits.

        Safe against others that ensure the same id at the same time: one row results and nobody fails.
        """
        ...

    async def use(self, session: ChatSession) -> None:
        """Store the session, or mark activity on the one of its id that is there: ``last_active_at`` rises to this
        one's (it never falls), ``expires_at`` becomes this one's, and all else is left as it is.

        Either way the row stays until this unit of work ends: whoever would erase it waits.

        Of those that use one id at the same time none is lost: one row results and nobody fails.
        """
        ...

    async def lock_chain(self, session_id: str) -> ChainHead:
        """Where the chain of the session's ended runs stands, kept so by others until this unit of work ends.

        A session that is not there, and one of which no run has ended with a seal, stands at ``ChainHead()``.
        """
        ...


class RunsView(Protocol):
    """Reads runs."""

    async def get(self, session_id: str, run_id: str) -> DiagnosisRun | None:
        """The run, if it belongs to this session."""
        ...

    async def latest(self, session_id: str) -> DiagnosisRun | None:
        """The session's newest run by ``(created_at, id)``, the rule of ``core.rules.latest_run``."""
        ...

    async def page(self, session_id: str, *, before: str | None, limit: int) -> Sequence[RunSummary]:
        """At most ``limit`` of the session's runs, newest first, as summaries; no step or tool call is read.

        ``before`` continues after that run: pages taken while runs are added neither lose nor repeat a run that
        was there at the start. Raises ``RunNotFound`` when the session has no such run.
        """
        ...

    async def expired(self, *, now: datetime, limit: int) -> Sequence[DiagnosisRun]:
        """At most ``limit`` RUNNING runs, of any session, whose lease ended before ``now``, oldest lease first.

        A RUNNING run without a lease has nobody who executes it: it is among them, before the others. The rule is
        that of ``core.rules.lease_expired``.
        """
        ...


class Runs(RunsView, Protocol):
    """Reads and writes runs."""

    async def add(self, run: DiagnosisRun) -> DiagnosisRun:
        """Store a new run; returns it with its ``id``. Raises ``RunAlreadyExists`` and leaves the stored one alone."""
        ...

    async def lock(self, session_id: str, run_id: str) -> DiagnosisRun | None:
        """The run as ``get`` gives it, kept unchanged by others until this unit of work ends."""
        ...

    async def lock_to_end(self, session_id: str, run_id: str) -> tuple[DiagnosisRun, ChainHead] | None:
        """The run as ``lock`` gives it with its session's chain as ``sessions.lock_chain`` gives it, both kept.

        ``None`` unless both are there, the run and its session.
        """
        ...

    async def lock_latest(self, session_id: str) -> DiagnosisRun | None:
        """The run as ``latest`` gives it, kept unchanged by others until this unit of work ends."""
        ...

    async def end(self, run: DiagnosisRun, seal: RunSeal, *, expires_at: datetime | None) -> None:
        """Store how a run ended: status, answer, error, degraded, evaluation, orchestration trace, counts, times,
        and its seal, whose digest becomes the run's, and the last of its session's chain.

        Its session is touched with it: ``last_active_at`` rises to the run's ``finished_at``, ``expires_at`` is set
        unless it is ``None``, and ``message_pair_count`` rises by one if ``core.rules.counts_as_turn``; of runs that
        end at the same time none is lost.

        A seal that does not continue the chain of a session that is there is a ``ValueError``, and nothing changes.
        The stored run must be RUNNING; else ``InvalidTransition``, and nothing changes: of two that end the same
        run, one does. A run that is not there is ``RunNotFound``, one that has not ended a ``ValueError``. Feedback,
        case and ``context_degraded`` are left as they are, and the lease is gone.
        """
        ...

    async def set_context_degraded(self, session_id: str, run_id: str) -> None:
        """Note that the run's conversation could not be read. Raises ``RunNotFound``."""
        ...

    async def set_feedback(self, session_id: str, run_id: str, feedback: Feedback) -> None:
        """Replace the run's feedback, and raise ``updated_at`` to its time. Raises ``RunNotFound``.

        The run's status, answer and counts stay as they are.
        """
        ...

    async def renew(self, runs: Collection[RunKey], *, owner: str, until: datetime) -> frozenset[RunKey]:
        """Prolong the leases of those of these runs that are RUNNING and held by ``owner``; returns their keys.

        A run that another unit of work has locked at the moment may be left out: nobody waits for it.

        A lease that ends later than ``until`` already is not cut short: a clock may have been set back.
        """
        ...


class JournalView(Protocol):
    """Reads the steps and tool calls of a run."""

    async def steps(self, session_id: str, run_id: str) -> Sequence[AgentStep]:
        """The run's steps by ``sequence``; rows of other runs, of this session or another, are never among them."""
        ...

    async def tools(self, session_id: str, run_id: str) -> Sequence[ToolInvocation]:
        """The run's tool calls by ``sequence``; rows of other runs are never among them."""
        ...

    async def entries(
        self, session_id: str, run_id: str
    ) -> tuple[Sequence[AgentStep], Sequence[ToolInvocation]]:
        """The run's steps and its tool calls, as ``steps`` and ``tools`` give them, as of one moment."""
        ...


class Journal(JournalView, Protocol):
    """Reads and writes the steps and tool calls of a run."""

    async def add_step(self, step: AgentStep) -> None:
        """Store a step of a RUNNING run.

        Raises ``InvalidTransition`` when the run is not RUNNING any more, ``RunNotFound`` when its session has no
        such run, ``ValueError`` when the run has a step with this sequence; nothing is written then.
        """
        ...

    async def add_tool(self, tool: ToolInvocation) -> None:
        """Store a tool call of a RUNNING run. Raises as ``add_step`` does."""
        ...


class CasesView(Protocol):
    """Reads the case library."""

    async def of_run(self, run_id: str) -> Case | None:
        """The automatic case made of this run, active or withdrawn."""
        ...

    async def page(self, *, query: str | None, before: int | None, limit: int) -> Sequence[Case]:
        """At most ``limit`` ACTIVE cases, newest first by id.

        ``query`` keeps those whose question or answer contains it, with no character of it special. ``before``
        keeps those with a lower id.
        """
        ...


class Cases(CasesView, Protocol):
    """Reads and writes the case library."""

    async def put(self, case: Case) -> Case:
        """Store an automatic case: there is at most one for a ``diagnosis_id``, however many arrive at once.

        An existing one takes the query, answer, status and ``updated_at`` given, and keeps its id and
        ``created_at``. Returns the stored case, with its id. A case of another source is a ``ValueError``.
        """
        ...

    async def withdraw(self, run_id: str, *, at: datetime) -> None:
        """Set the automatic case of this run to WITHDRAWN; none is no error. Other cases are untouched."""
        ...


class HistoryView(Protocol):
    """Reads the old system's sessions."""

    async def get(self, session_id: str) -> HistoricalSession | None:
        """The historical row with exactly this session id; the latest, by ``(created_at, id)``, if it repeats."""
        ...

    async def trace(self, session_id: str) -> HistoricalTrace | None:
        """The historical row with those of the session's steps and tool calls that belong to no run, in old order."""
        ...


class History(HistoryView, Protocol):
    """Reads the old system's sessions, and lets feedback be written to them."""

    async def set_feedback(self, session_id: str, feedback: Feedback) -> None:
        """Replace the historical row's feedback and comment. Raises ``SessionNotFound``. No run is touched."""
        ...


class Keys(Protocol):
    """Idempotency keys."""

    async def claim(self, key: IdempotencyKey) -> IdempotencyKey | None:
        """Store the key and return ``None``; or return the one that holds its name already, and change nothing.

        Of several that claim one name at once, exactly one gets ``None``.
        """
        ...


class LedgerView(Protocol):
    """One consistent snapshot of the ledger, of the moment of the first read. There is nothing on it that writes."""

    @property
    def sessions(self) -> SessionsView: ...
    @property
    def runs(self) -> RunsView: ...
    @property
    def journal(self) -> JournalView: ...
    @property
    def cases(self) -> CasesView: ...
    @property
    def history(self) -> HistoryView: ...


class UnitOfWork(Protocol):
    """One transaction: what is written in it becomes visible and durable at ``commit``, all of it or none."""

    @property
    def sessions(self) -> Sessions: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def journal(self) -> Journal: ...
    @property
    def cases(self) -> Cases: ...
    @property
    def history(self) -> History: ...
    @property
    def keys(self) -> Keys: ...

    async def erase(
        self, session_id: str, *, at: datetime, idle_since: datetime | None = None
    ) -> Erasure | None:
        """Remove a session with its runs, steps, tool calls, cases, keys and historical row; leave a tombstone.

        ``None`` when nothing of it was there, and no tombstone then. With ``idle_since``, a session is left as it is,
        and ``None`` given, unless it is one of ``sessions.idle`` of that time. Other sessions are untouched. The id
        may then be used anew, and no store-assigned id is given a second time.
        """
        ...

    async def commit(self) -> None:
        """Make the work durable; returns only then. Leaving the block without it, or by an error, rolls back."""
        ...


Body: TypeAlias = Callable[[UnitOfWork], Coroutine[Any, Any, T]]
"""What is done in a unit of work: it awaits nothing but that, leaves the commit to others, and may be run again."""


class Ledger(Protocol):
    """Opens units of work and views. Safe to use from many tasks at once."""

    def work(self) -> AbstractAsyncContextManager[UnitOfWork]:
        """A unit of work. It holds a connection only inside the block; many at once wait for one another."""
        ...

    async def transact(self, body: Body[T]) -> T:
        """Run ``body`` in a unit of work and commit it; return what it returned, once that is durable.

        Bodies that arrive together may share a commit. What one of them raises undoes its own work, is raised to
        its own caller, and touches no other. A caller that is cancelled does not know whether its work was done.
        """
        ...

    async def start(self, session: ChatSession, run: DiagnosisRun) -> DiagnosisRun:
        """Store a new run and use its session, as ``runs.add`` and ``sessions.use`` do in one unit of work; return
        the run with its ``id`` once both are durable.

        Raises ``RunAlreadyExists``, and then the session is as it was. As with ``transact``, runs that start together
        may share a commit, and each has an outcome of its own.
        """
        ...

    async def record(self, entry: AgentStep | ToolInvocation) -> None:
        """Store a step or tool call of a RUNNING run; return once it is durable. Raises as ``journal.add_step`` does.

        As with ``transact``, entries that arrive together may share a commit, and each has an outcome of its own.
        """
        ...

    async def end(self, session_id: str, run_id: str, decide: Decide) -> DiagnosisRun:
        """End a run as ``decide`` says; return it as stored, once that is durable.

        It is told what stands on record: the run and its session's chain, as ``runs.lock_to_end`` gives them, and the
        run's entries, as ``journal.entries`` does. What it gives is stored as by ``runs.end`` and ``cases.put``, and
        refused as there. When it gives ``None``, nothing is written and the run returned as it stands; what it raises
        is raised. Raises ``RunNotFound`` unless the run and its session are both there.

        Like a body, it asks nobody anything and may be asked again. As with ``transact``, runs that end together may
        share a commit, and each has an outcome of its own: one that ends after another of its session is told the
        chain as that one left it.
        """
        ...

    def view(self) -> AbstractAsyncContextManager[LedgerView]:
        """A read-only snapshot: what others commit meanwhile is not seen, and the store refuses a write."""
        ...

    async def trace(self, session_id: str, run_id: str | None = None) -> StoredTrace:
        """The session's row, its run with this id or else its latest, and that run's steps and tool calls.

        All as of one moment, in the order and by the rules of ``sessions.get``, ``runs`` and ``journal``.
        """
        ...

    async def has_run(self, session_id: str, run_id: str) -> bool:
        """Whether the session has this run, as ``runs.get`` would give it now."""
        ...

    async def check(self) -> None:
        """Return when the ledger answers and its schema is the one this version needs.

        Raises ``LedgerUnavailable`` or ``SchemaOutOfDate``.
        """
        ...

    async def close(self) -> None:
        """Let go of connections and files. May be called more than once."""
        ...
