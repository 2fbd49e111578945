"""Verification: what must be true of a ledger, checked session by session over what is stored.

Nothing here repairs anything: what is found may be evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from attrs import define, evolve, field, frozen

from casenotes.core import rules
from casenotes.core.breaches import Breach, BreachKind, Fault
from casenotes.core.chain import Link, chain_faults
from casenotes.core.model import AgentStep, Case, ChatSession, DiagnosisRun, ToolInvocation
from casenotes.core.seal import (
    ChainHead,
    Differences,
    RunSeal,
    differences,
    run_digest,
    step_digest,
    tool_digest,
)
from casenotes.core.words import CaseStatus, RunStatus

Entry = TypeVar("Entry", AgentStep, ToolInvocation)


@frozen
class Stray:
    """Steps or tool calls (``what``) of a session that name a run which it does not have.

    ``is_foreign`` when another session has that run.
    """

    what: str
    run_id: str
    number: int
    is_foreign: bool


@frozen
class StoredSession:
    """What is stored of a session beside its runs. ``session`` is ``None`` when it has no row of its own.

    ``is_historical`` when the old system had it too. A row that cannot be read has neither ``session`` nor ``head``.
    """

    session_id: str
    session: ChatSession | None
    head: ChainHead | None
    strays: tuple[Stray, ...] = ()
    cases_without_run: tuple[int, ...] = ()
    is_historical: bool = False
    is_unreadable: bool = False

    @property
    def is_there(self) -> bool:
        """Whether anything but runs is stored under this id."""
        found = (self.session, self.strays, self.cases_without_run, self.is_historical, self.is_unreadable)
        return any(found)


@frozen
class StoredRun:
    """A run with all that belongs to it, each as it is stored. ``run`` is ``None`` when its row cannot be read.

    What else cannot be read is named: steps and tool calls by their sequences.
    """

    run_id: str
    run: DiagnosisRun | None
    seal: RunSeal | None
    steps: Sequence[AgentStep] = ()
    tools: Sequence[ToolInvocation] = ()
    case: Case | None = None
    unreadable_steps: Sequence[int] = ()
    unreadable_tools: Sequence[int] = ()
    is_seal_unreadable: bool = False
    is_case_unreadable: bool = False
    are_entries_unreadable: bool = False


@define
class SessionCheck:
    """Checks one session: give it each of its runs, in any order, then ask what was found.

    ``sealed_since`` is when this ledger began to make digests: a run that began later and has ended has one.
    """

    stored: StoredSession
    sealed_since: datetime | None
    runs: int = field(default=0, init=False)
    running: int = field(default=0, init=False)
    without_digest: int = field(default=0, init=False)
    _turns: int = field(default=0, init=False)
    _has_unread: bool = field(default=False, init=False)
    _links: list[Link] = field(factory=list, init=False)
    _unsealed: list[DiagnosisRun] = field(factory=list, init=False)
    _is_new: bool = field(default=False, init=False)
    _found: list[Breach] = field(factory=list, init=False)

    def check(self, stored: StoredRun) -> None:
        """Check a run by itself, and remember its place in the chain."""
        run, seal = stored.run, stored.seal
        faults = [*_unreadable(stored), *_entries(stored), *(() if run is None else _run(stored, run))]
        for kind, detail in faults:
            self._add(Fault(kind, stored.run_id, detail))
        if seal is not None:
            is_sound = run is not None and _is_sealed_so(run, seal)
            self._links.append(Link(stored.run_id, seal, is_sound))
        self.runs += 1
        if run is None:
            self._has_unread = True
            return
        self._turns += rules.counts_as_turn(run)
        self._is_new |= self.sealed_since is not None and run.created_at >= self.sealed_since
        if run.status is RunStatus.RUNNING:
            self.running += 1
        elif seal is None and not stored.is_seal_unreadable:
            self.without_digest += 1
            if not self._is_compatibility(run):
                self._unsealed.append(run)
        elif run.finished_at is not None:
            # A digest was made then at the latest, whatever else the ledger says.
            self.sealed_since = min(run.finished_at, self.sealed_since or run.finished_at)
        if not stored.is_case_unreadable:
            for kind, detail in _case(stored, run, must_be_there=not self._is_compatibility(run)):
                self._add(Fault(kind, run.run_id, detail))

    def finish(self) -> Sequence[Breach]:
        """All that is wrong with the session."""
        stored = self.stored
        for fault in (
            *_beside_runs(stored, is_used=bool(self._links) or self._is_new),
            *self._added(),
            *self._miscounted(),
            *chain_faults(stored.head, self._links),
        ):
            self._add(fault)
        return tuple(self._found)

    def _is_compatibility(self, run: DiagnosisRun) -> bool:
        """Whether a migration made this run of the old system's session: nobody saw it end."""
        return self.stored.is_historical and run.run_id == rules.compatibility_run_id(run.session_id)

    def _added(self) -> Iterator[Fault]:
        for run in self._unsealed:
            if self.sealed_since is not None and run.created_at >= self.sealed_since:
                detail = (
                    "the run has ended and has no digest, though it began when digests were made: it was added by"
                    " another program, or ended by a version from before digests"
                )
                yield Fault(BreachKind.ADDED, run.run_id, detail)

    def _miscounted(self) -> Iterator[Fault]:
        session = self.stored.session
        if session is None or self.stored.is_historical or self.without_digest or self._has_unread:
            return
        if session.message_pair_count != self._turns:
            detail = f"the session counts {session.message_pair_count} answered turns, its runs {self._turns}"
            yield Fault(BreachKind.COUNTS, None, detail)

    def _add(self, fault: Fault) -> None:
        self._found.append(Breach(fault.kind, self.stored.session_id, fault.run_id, fault.detail))


def _beside_runs(stored: StoredSession, is_used: bool) -> Iterator[Fault]:
    if stored.is_unreadable:
        yield Fault(BreachKind.UNREADABLE, None, "the session's row cannot be read")
    elif stored.session is None and is_used:
        yield Fault(BreachKind.ORPHAN, None, "the session of these runs has no row")
    for stray in stored.strays:
        where = "of a run of another session" if stray.is_foreign else "of a run that is not there"
        kind = BreachKind.FOREIGN if stray.is_foreign else BreachKind.ORPHAN
        yield Fault(kind, stray.run_id, f"{_counted(stray.number, stray.what)} {where}")
    for number in stored.cases_without_run:
        detail = f"case {number} was made of a run that the session does not have"
        yield Fault(BreachKind.CASE, None, detail)


def _unreadable(stored: StoredRun) -> Iterator[tuple[BreachKind, str]]:
    for what, is_unreadable in (
        (
            "the run, or a step or tool call of it," if stored.are_entries_unreadable else "the run",
            stored.run is None,
        ),
        ("the run's digest, or its place in the chain,", stored.is_seal_unreadable),
        ("the run's case", stored.is_case_unreadable),
        *((f"step {sequence}", True) for sequence in stored.unreadable_steps),
        *((f"tool call {sequence}", True) for sequence in stored.unreadable_tools),
    ):
        if is_unreadable:
            yield BreachKind.UNREADABLE, f"{what} cannot be read"


def _run(stored: StoredRun, run: DiagnosisRun) -> Iterator[tuple[BreachKind, str]]:
    yield from _lifecycle(run, stored.seal)
    if run.status is not RunStatus.RUNNING:
        for what, said, number in (
            ("step", run.step_count, len(stored.steps) + len(stored.unreadable_steps)),
            ("tool call", run.tool_call_count, len(stored.tools) + len(stored.unreadable_tools)),
        ):
            if said != number:
                yield BreachKind.COUNTS, f"the run counts {_counted(said, what)} and has {number}"
    if run.status is RunStatus.SUCCESS:
        for what, entries, unreadable in (
            ("step", stored.steps, stored.unreadable_steps),
            ("tool call", stored.tools, stored.unreadable_tools),
        ):
            if not unreadable and [entry.sequence for entry in entries] != list(range(1, len(entries) + 1)):
                detail = f"the numbers of its {what}s are not 1 to {len(entries)}, each once"
                yield BreachKind.SEQUENCE, detail
    if stored.seal is not None and not _is_sealed_so(run, stored.seal):
        yield BreachKind.ALTERED, "the run itself: a field of it, its place in the chain, or its digest"


def _is_sealed_so(run: DiagnosisRun, seal: RunSeal) -> bool:
    try:
        return seal.digest == run_digest(run, seal.position, seal.previous, seal.steps, seal.tools)
    except _NO_DIGEST:
        return False


_NO_DIGEST = (ValueError, TypeError, RecursionError)
"""What cannot be written in the canonical form was never sealed."""


def _lifecycle(run: DiagnosisRun, seal: RunSeal | None) -> Iterator[tuple[BreachKind, str]]:
    running = run.status is RunStatus.RUNNING
    if running and (run.finished_at is not None or run.answer is not None or seal is not None):
        yield BreachKind.LIFECYCLE, "the run is RUNNING, and has an answer, an end or a digest"
    if seal is not None and not running:
        if run.finished_at is None:
            yield BreachKind.LIFECYCLE, f"the run is {run.status} and never finished"
        elif run.finished_at < run.created_at:
            yield BreachKind.LIFECYCLE, "the run finished before it began"
        if run.lease_owner is not None or run.lease_expires_at is not None:
            yield BreachKind.LIFECYCLE, f"the run is {run.status} and still has a lease"
        if (run.status is RunStatus.SUCCESS) != (run.answer is not None):
            yield BreachKind.LIFECYCLE, f"the run is {run.status}, which its answer contradicts"


def _entries(stored: StoredRun) -> Iterator[tuple[BreachKind, str]]:
    if stored.seal is None or stored.are_entries_unreadable:
        return
    steps = differences(stored.seal.steps, stored.steps, _or_none(step_digest))
    tools = differences(stored.seal.tools, stored.tools, _or_none(tool_digest))
    yield from _named("step", _but(steps, stored.unreadable_steps))
    yield from _named("tool call", _but(tools, stored.unreadable_tools))


def _or_none(digest_of: Callable[[Entry], str]) -> Callable[[Entry], str]:
    def digest(entry: Entry) -> str:
        try:
            return digest_of(entry)
        except _NO_DIGEST:
            return ""

    return digest


def _but(found: Differences, unreadable: Sequence[int]) -> Differences:
    return evolve(found, removed=tuple(n for n in found.removed if n not in unreadable))


def _named(what: str, found: Differences) -> Iterator[tuple[BreachKind, str]]:
    kinds: Mapping[BreachKind, Sequence[int]] = {
        BreachKind.ALTERED: found.altered,
        BreachKind.REMOVED: found.removed,
        BreachKind.ADDED: found.added,
    }
    for kind, sequences in kinds.items():
        for sequence in sequences:
            yield kind, f"{what} {sequence}"


def _case(stored: StoredRun, run: DiagnosisRun, must_be_there: bool) -> Iterator[tuple[BreachKind, str]]:
    expected, case = rules.case_for(run, run.updated_at), stored.case
    if case is not None and case.session_id not in (None, run.session_id):
        yield BreachKind.CASE, "its case names another session"
    if expected is None:
        if case is not None and case.status is CaseStatus.ACTIVE:
            detail = "its case is in the library, and the run is not rated useful, or has no answer"
            yield BreachKind.CASE, detail
    elif case is None or case.status is not CaseStatus.ACTIVE:
        if must_be_there:
            yield BreachKind.CASE, "the run is rated useful, and its case is not in the library"
    elif (case.query, case.answer) != (expected.query, expected.answer):
        yield BreachKind.CASE, "its case holds another question or answer than the run"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
