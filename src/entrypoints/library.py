"""The in-process face: ``casenotes.open`` and the notes it gives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from attrs import evolve, frozen

from casenotes.core import rules
from casenotes.core.errors import InvalidInput, InvalidSettings
from casenotes.core.model import Case, DiagnosisRun, RunKey
from casenotes.core.service.leases import LeaseKeeper
from casenotes.core.service.reading import DEFAULT_LIMIT
from casenotes.core.service.recording import Recording
from casenotes.core.service.service import Service
from casenotes.core.service.stream import Order
from casenotes.core.service.verifying import Verification
from casenotes.core.text import settle
from casenotes.core.views import Erasure, FeedbackReceipt, Pruning, RunSummary, RunTrace, SessionOverview
from casenotes.core.words import AgentFlow, Rating
from casenotes.entrypoints.open_runs import OpenRuns
from casenotes.entrypoints.run_block import Run
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import Diagnostician

RunFlow: TypeAlias = AgentFlow | Literal["CHAT", "STATE_GRAPH", "AI_OPS"]
Id = TypeVar("Id", str, str | None)
AskFlow: TypeAlias = Literal["auto", "chat", "graph"]
UserRating: TypeAlias = Rating | Literal["useful", "not_useful"]

_FLOWS = (AgentFlow.CHAT, AgentFlow.STATE_GRAPH, AgentFlow.AI_OPS)


@frozen
class Notes:
    """An open record. May be used from any number of tasks at once."""

    _service: Service
    _open_runs: OpenRuns
    _has_diagnostician: bool

    def run(
        self, question: str, *, session: str | None = None, flow: RunFlow = AgentFlow.CHAT
    ) -> AbstractAsyncContextManager[Run]:
        """A run that begins with the block and ends with it; a new session, unless one is named.

        It ends SUCCESS with its answer, FAILED without one or when an exception leaves the block, which goes on to
        the caller. Beginning it raises ``InvalidInput`` (nothing is written then) and ``LedgerUnavailable``; leaving
        raises ``InvalidTransition`` or ``RunNotFound`` when somebody else ended or erased the run meanwhile.
        """
        asked = rules.check_question(question)
        if flow not in _FLOWS:
            raise InvalidInput("flow", f"must be {', '.join(_FLOWS[:-1])} or {_FLOWS[-1]}")
        session_id = self._session(session, AgentFlow(flow))

        async def start() -> Recording:
            begun = await self._service.recorder.start(session_id, asked, AgentFlow(flow))
            assert isinstance(begun, Recording)  # a replay needs an idempotency key
            return begun

        return self._open_runs.block(start)

    async def ask(self, question: str, *, session: str | None = None, flow: AskFlow = "auto") -> DiagnosisRun:
        """Have the diagnostician that ``open`` was given answer, and give the run as it ended, SUCCESS or FAILED.

        The run goes on when the caller is cancelled. Raises ``InvalidSettings`` without a diagnostician,
        ``InvalidInput``, ``LedgerUnavailable``, ``TooManyRunning``.
        """
        if not self._has_diagnostician:
            raise InvalidSettings("casenotes.open needs a diagnostician= for notes.ask")
        asked = rules.check_question(question)
        routed = rules.route(flow, asked)
        order = Order(self._session(session, routed), asked, routed)
        execution = await self._service.executions.submit(order)
        return (await execution.outcome()).run

    async def trace(self, session: str, run_id: str | None = None) -> RunTrace:
        """All that is on record of exactly this run of the session, or of its latest. Writes nothing.

        Raises ``SessionNotFound``, and ``RunNotFound`` for a run that is not the session's.
        """
        return await self._service.reading.trace(_id("session", session), _id("run_id", run_id))

    async def runs(
        self, session: str, *, limit: int = DEFAULT_LIMIT, before: str | None = None
    ) -> Sequence[RunSummary]:
        """The session's runs, newest first; ``before`` (a run id) continues a page.

        Raises ``SessionNotFound``, ``RunNotFound`` for ``before``, ``InvalidInput`` for a limit outside 1 to 500.
        """
        return await self._service.reading.runs(
            _id("session", session), limit=limit, before=_id("before", before)
        )

    async def sessions(
        self, query: str | None = None, *, limit: int = DEFAULT_LIMIT, before: str | None = None
    ) -> Sequence[SessionOverview]:
        """Sessions, latest active first; ``query`` looks in ids and questions, ``before`` (a session id) continues.

        Raises ``SessionNotFound`` for ``before``, ``InvalidInput`` for a limit outside 1 to 500.
        """
        return await self._service.reading.sessions(
            query=None if query is None else settle(query), limit=limit, before=_id("before", before)
        )

    async def cases(
        self, query: str | None = None, *, limit: int = DEFAULT_LIMIT, before: int | None = None
    ) -> Sequence[Case]:
        """Active cases, newest first; ``query`` looks in questions and answers, ``before`` (a case id) continues."""
        return await self._service.reading.cases(
            query=None if query is None else settle(query), limit=limit, before=before
        )

    async def feedback(
        self, session: str, rating: UserRating, *, run_id: str | None = None, comment: str | None = None
    ) -> FeedbackReceipt:
        """Rate a run, the session's latest unless one is named. The last word wins; the receipt says what it changed.

        Raises ``SessionNotFound``, ``RunNotFound``, ``InvalidInput``; nothing is written then.
        """
        return await self._service.feedback.give(
            _id("session", session), rating, run_id=_id("run_id", run_id), comment=comment
        )

    async def erase(self, session: str) -> Erasure:
        """Remove the session with all that is on record of it. Raises ``SessionNotFound``, ``ContextUnavailable``."""
        return await self._service.conversations.erase(_id("session", session))

    async def prune(self, older_than: timedelta) -> Pruning:
        """Remove the sessions that were last active longer ago than this, each whole; one with a running run stays.

        Raises ``InvalidInput`` unless the time is positive, and ``ContextUnavailable``; what was removed before
        stays removed.
        """
        if older_than <= timedelta():
            raise InvalidInput("older_than", "must be more than no time")
        return await self._service.conversations.pruned(older_than)

    async def verify(self, session: str | None = None) -> Verification:
        """Check that the record, or one session of it, is whole and as it was written. Writes nothing.

        Raises ``SessionNotFound``.
        """
        from casenotes.entrypoints.bootstrap import verifying  # here for the reason given in ``_opened``

        ledger = verifying(self._service.ledger)
        return await (ledger.all() if session is None else ledger.session(_id("session", session)))

    def _session(self, given: str | None, flow: AgentFlow) -> str:
        if given is None or not given.strip():
            kind = "aiops" if flow is AgentFlow.AI_OPS else "chat"
            return f"{kind}-{self._service.new_id()}"
        return _id("session", given)


def _id(name: str, given: Id) -> Id:
    """The id, if one like it can be stored. Raises ``InvalidInput`` else."""
    if given is not None and settle(given) != given:
        raise InvalidInput(name, "must not hold NUL or a lone surrogate")
    return given


def open(
    url: str,
    *,
    migrate: bool = False,
    context_url: str = "memory://",
    diagnostician: Diagnostician | None = None,
    run_lease: timedelta = timedelta(seconds=30),
    redaction_rules: str | Path | None = None,
) -> AbstractAsyncContextManager[Notes]:
    """The record in the database at ``url``: ``memory://``, ``sqlite+aiosqlite:///path`` or ``postgresql+asyncpg://...``.

    An SQLite file is made and migrated by itself, any other database only with ``migrate``. The environment is not
    read. Give the ``context_url`` of a service that shares the database, and its conversations go on here and are
    erased from here. A run whose process dies is ended FAILED by any other once its ``run_lease`` is over. The TOML
    file ``redaction_rules`` adds to what is redacted, in the whole process, while the record is open.

    Raises ``InvalidSettings``; on entering, ``LedgerUnavailable`` and ``SchemaOutOfDate``, whose message says what
    to run.
    """
    given = {"CASENOTES_DATABASE_URL": url, "CASENOTES_CONTEXT_URL": context_url}
    if redaction_rules is not None:
        given["CASENOTES_REDACTION_RULES"] = str(redaction_rules)
    for name, value in given.items():
        if not value.strip():
            raise InvalidSettings(f"{name}: must not be empty")
    settings = evolve(Settings.from_environ(given), run_lease=run_lease)
    return _opened(settings, diagnostician, migrate)


@asynccontextmanager
async def _opened(
    settings: Settings, diagnostician: Diagnostician | None, migrate: bool
) -> AsyncIterator[Notes]:
    # Here, so that `import casenotes` loads no driver and no web framework.
    from casenotes.entrypoints.bootstrap import assemble, kept, upgrade
    from casenotes.entrypoints.observing import LoggingObserver

    observer = LoggingObserver()
    if migrate:
        await upgrade(settings.database_url)
    async with assemble(settings, observer, diagnostician) as service:
        open_runs = OpenRuns(observer, service.executions.conductor.remember)

        async with kept(leases_of(service, open_runs)):
            try:
                yield Notes(service, open_runs, diagnostician is not None)
            finally:
                await open_runs.close()
                await service.executions.close(settings.shutdown_grace)


def leases_of(service: Service, open_runs: OpenRuns) -> LeaseKeeper:
    """What keeps the leases of all runs of this process: of those it executes, and those whose block is open."""

    async def lost(runs: Collection[RunKey]) -> None:
        await open_runs.lost(runs)
        await service.executions.lost(runs)

    return LeaseKeeper(service.recorder, lambda: service.executions.running() | open_runs.running(), lost)
