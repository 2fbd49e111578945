"""Running a suite: each incident a real run of the service, some at once, what is done kept as it is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from attrs import define, evolve, field, fields, frozen

from casenotes.core import rules
from casenotes.core.baseline.judging import judge, measure
from casenotes.core.baseline.report import BaselineReport, IncidentResult, InvalidBaseline, Unreadable
from casenotes.core.errors import InvalidEvidence
from casenotes.core.service.service import Service
from casenotes.core.service.stream import Order
from casenotes.core.text import Json
from casenotes.core.words import AgentFlow, RunStatus
from casenotes.entrypoints import bootstrap
from casenotes.entrypoints.ambient import utc_now
from casenotes.entrypoints.baseline.files import read_report, write_report
from casenotes.entrypoints.baseline.suite import Suite, SuiteIncident
from casenotes.entrypoints.http.ai_ops import QUESTION
from casenotes.entrypoints.observing import LoggingObserver
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import AgentEvent, Closing, Diagnostician, Enquiry

FLOWS = ("auto", "chat", "graph", "aiops")
_LIVE = frozenset({"prometheus_url", "alertmanager_url", "loki_url", "logs", "runbooks"})

Make: TypeAlias = Callable[[Settings], Diagnostician]
"""Gives the diagnostician that is judged, for settings whose evidence is one pack. Raises ``InvalidEvidence``."""

Tell: TypeAlias = Callable[[int, int, str], None]
"""Is told how many incidents are done, of how many, and which was the last."""


@frozen
class Plan:
    """How a suite is run. ``timeout`` is that of one incident. ``anew``: what an interrupted run left is not used."""

    flow: str = "auto"
    concurrency: int = 4
    timeout: timedelta = timedelta(seconds=120)
    anew: bool = False
    database_url: str = "memory://"


@frozen
class Ran:
    """The baseline, and how many of its incidents an earlier, interrupted run had done."""

    report: BaselineReport
    resumed: int


async def run_suite(
    suite: Suite,
    out: Path,
    plan: Plan,
    settings: Settings,
    *,
    tell: Tell = lambda done, of, name: None,
    make: Make = bootstrap.configured_diagnostician,
) -> Ran:
    """Run every incident of the suite and write the baseline to ``out``.

    While it runs, what is done stands in ``<out>.partial``; a run that is interrupted leaves it there, and the next one
    of the same version and settings goes on from it. Raises ``InvalidInput`` when ``out`` cannot be written, and what
    ``open_service`` raises.
    """
    begun = BaselineReport(
        version=version("casenotes"),
        created_at=_now(),
        settings=_shown(plan, settings),
        incidents=(),
        unreadable=suite.unreadable,
    )
    partial = out.with_name(f"{out.name}.partial")
    kept = () if plan.anew else _done_before(partial, begun, suite)
    begun = evolve(begun, incidents=kept)
    write_report(partial, begun)  # tells at once whether there is a place for it
    done = {one.id for one in kept}
    todo = [one for one in suite.incidents if one.incident.id not in done]
    progress = _Progress(begun, partial, len(kept), len(suite.incidents), tell)
    running = evolve(
        settings,
        database_url=plan.database_url,
        context_url="memory://",
        run_timeout=plan.timeout,
        shutdown_grace=timedelta(0),
        max_running=max(plan.concurrency, 1),
    )
    packs = _Packs(running, make)
    async with packs, bootstrap.open_service(running, LoggingObserver(), diagnostician=packs) as service:
        turns = asyncio.Semaphore(plan.concurrency)

        async def one(incident: SuiteIncident) -> None:
            async with turns:
                progress.add(await _run(service, packs, incident, plan.flow), incident)

        try:
            async with asyncio.TaskGroup() as group:
                for incident in todo:
                    group.create_task(one(incident))
        except* Exception as faults:
            raise faults.exceptions[0] from None
    write_report(out, progress.report)
    with suppress(OSError):
        partial.unlink()
    return Ran(progress.report, len(kept))


@define
class _Progress:
    report: BaselineReport
    _partial: Path
    _done: int
    _of: int
    _tell: Tell

    def add(self, result: IncidentResult | Unreadable, incident: SuiteIncident) -> None:
        report = self.report
        if isinstance(result, Unreadable):
            self.report = evolve(report, unreadable=(*report.unreadable, result))
        else:
            self.report = evolve(report, incidents=(*report.incidents, result))
        write_report(self._partial, self.report)
        self._done += 1
        self._tell(self._done, self._of, incident.incident.id)


@define
class _Packs:
    """A ``Diagnostician`` that has each session's question answered from the pack of its incident.

    Left as a context, it closes what is still open: by then no run is under way any more.
    """

    _settings: Settings
    _make: Make
    _of_session: dict[str, Diagnostician] = field(factory=dict, init=False)

    def open(self, session_id: str, pack: Path) -> None:
        """Raises ``InvalidEvidence``."""
        live: dict[str, Any] = {one.name: None for one in fields(Settings) if one.name in _LIVE}
        alone = evolve(self._settings, evidence=pack, **live)
        self._of_session[session_id] = self._make(alone)

    async def close(self, session_id: str) -> None:
        diagnostician = self._of_session.pop(session_id, None)
        if isinstance(diagnostician, Closing):
            await diagnostician.close()

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *_: object) -> None:
        for session_id in list(self._of_session):
            await self.close(session_id)

    def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        return self._of_session[enquiry.session_id].diagnose(enquiry)


async def _run(
    service: Service, packs: _Packs, incident: SuiteIncident, flow: str
) -> IncidentResult | Unreadable:
    head = incident.incident
    session_id = f"baseline-{service.new_id()}"
    try:
        packs.open(session_id, incident.path)
    except InvalidEvidence as error:
        return Unreadable(incident.path.name, str(error))
    started = _now()
    execution = await service.executions.submit(_order(session_id, head.question, flow))
    ended = (await execution.outcome()).run
    trace = await service.reading.trace(session_id, ended.run_id)
    await packs.close(session_id)
    failed = ended.status is not RunStatus.SUCCESS
    return IncidentResult(
        id=head.id,
        folder=incident.path.name,
        question=head.question,
        flow=ended.agent_flow,
        evidence=incident.evidence,
        facts=judge(head.facts, trace.answer),
        decoys=judge(head.decoys, trace.answer),
        measures=measure(trace),
        error=(ended.error_message or "no reason is known") if failed else None,
        session_id=session_id,
        run_id=ended.run_id,
        started_at=started,
    )


def _order(session_id: str, question: str, flow: str) -> Order:
    if flow == "aiops":
        return Order(session_id, QUESTION, AgentFlow.AI_OPS)
    return Order(session_id, question, rules.route(flow, question))


def _shown(plan: Plan, settings: Settings) -> dict[str, Json]:
    """What bears on the answers. Nothing here can hold a secret: no URL, no key."""
    model = None if settings.llm_base_url is None else settings.llm_model
    return {
        "diagnostician": "embedded" if model is None else "model",
        "model": model,
        "flow": plan.flow,
        "timeoutSeconds": plan.timeout.total_seconds(),
    }


def _done_before(partial: Path, begun: BaselineReport, suite: Suite) -> tuple[IncidentResult, ...]:
    """What an interrupted run of the same version and settings had done well, of incidents that are as they were."""
    try:
        found = read_report(partial)
    except InvalidBaseline:  # not there, or no such file: then all is done anew
        return ()
    if (found.version, dict(found.settings)) != (begun.version, dict(begun.settings)):
        return ()
    now = {one.incident.id: one for one in suite.incidents}
    return tuple(
        one for one in found.incidents if one.error is None and one.id in now and _is_same(one, now[one.id])
    )


def _is_same(done: IncidentResult, now: SuiteIncident) -> bool:
    head = now.incident
    return (
        done.folder == now.path.name
        and done.question == head.question
        and dict(done.evidence) == now.evidence
        and [(one.text, one.terms) for one in done.facts] == [(one.text, one.terms) for one in head.facts]
        and [(one.text, one.terms) for one in done.decoys] == [(one.text, one.terms) for one in head.decoys]
    )


def _now() -> str:
    return utc_now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
