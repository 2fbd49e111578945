"""Ledgers that read wrongly, each in one way that a real one might."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import cast

from attrs import evolve
from contract.sabotage import BrokenLedger, Overlay

from casenotes.core.model import AgentStep, ChatSession, DiagnosisRun, ToolInvocation
from casenotes.core.text import Json
from casenotes.core.views import RunSummary, SessionOverview
from casenotes.ports.ledger import LedgerView, UnitOfWork

EVERYTHING = 1000


async def runs_of(view: LedgerView, session_id: str) -> list[DiagnosisRun]:
    """The session's runs, newest first."""
    page = await view.runs.page(session_id, before=None, limit=EVERYTHING)
    runs = [await view.runs.get(session_id, summary.run_id) for summary in page]
    return [run for run in runs if run is not None]


class IgnoresTheRunIdOfSteps(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def steps(session_id: str, run_id: str) -> Sequence[AgentStep]:
            found = [
                await view.journal.steps(session_id, run.run_id) for run in await runs_of(view, session_id)
            ]
            return [step for steps in found for step in steps]

        return Overlay(view, journal=Overlay(view.journal, steps=steps))


class GivesTheEntriesOfTheWholeSession(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def entries(
            session_id: str, run_id: str
        ) -> tuple[Sequence[AgentStep], Sequence[ToolInvocation]]:
            found = [
                await view.journal.entries(session_id, run.run_id) for run in await runs_of(view, session_id)
            ]
            return [step for steps, _ in found for step in steps], [
                tool for _, tools in found for tool in tools
            ]

        return Overlay(view, journal=Overlay(view.journal, entries=entries))


class BreaksTiesByTheSmallestId(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def latest(session_id: str) -> DiagnosisRun | None:
            runs = await runs_of(view, session_id)
            return max(runs, key=lambda run: (run.created_at, -(run.id or 0)), default=None)

        return Overlay(view, runs=Overlay(view.runs, latest=latest, lock_latest=latest))


class BreaksTiesByTheRunId(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def latest(session_id: str) -> DiagnosisRun | None:
            runs = await runs_of(view, session_id)
            return max(runs, key=lambda run: (run.created_at, run.run_id), default=None)

        return Overlay(view, runs=Overlay(view.runs, latest=latest, lock_latest=latest))


class PagesByTheTimeAlone(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def page(session_id: str, *, before: str | None, limit: int) -> Sequence[RunSummary]:
            whole = await view.runs.page(session_id, before=None, limit=EVERYTHING)
            last = None if before is None else await view.runs.get(session_id, before)
            return [run for run in whole if last is None or run.created_at < last.created_at][:limit]

        return Overlay(view, runs=Overlay(view.runs, page=page))


class HandsOutLiveReferences(BrokenLedger):
    def __init__(self) -> None:
        super().__init__()
        self.live: dict[str, Sequence[ToolInvocation]] = {}

    def in_view(self, view: LedgerView) -> object:
        async def tools(session_id: str, run_id: str) -> Sequence[ToolInvocation]:
            return self.live.setdefault(run_id, await view.journal.tools(session_id, run_id))

        return Overlay(view, journal=Overlay(view.journal, tools=tools))


class LeaksARunToAnotherSession(BrokenLedger):
    def __init__(self) -> None:
        super().__init__()
        self.owners: dict[str, str] = {}

    def in_view(self, view: LedgerView) -> object:
        async def get(session_id: str, run_id: str) -> DiagnosisRun | None:
            return await view.runs.get(self.owners.get(run_id, session_id), run_id)

        return Overlay(view, runs=Overlay(view.runs, get=get))

    def in_work(self, work: UnitOfWork) -> object:
        async def add(run: DiagnosisRun) -> DiagnosisRun:
            self.owners[run.run_id] = run.session_id
            return await work.runs.add(run)

        leaking = cast(Overlay, self.in_view(work))
        return Overlay(work, runs=Overlay(leaking.runs, add=add))


class WritesTheCommentOverTheAnswer(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def get(session_id: str, run_id: str) -> DiagnosisRun | None:
            run = await view.runs.get(session_id, run_id)
            return run and evolve(run, answer=run.feedback_comment or run.answer)

        return Overlay(view, runs=Overlay(view.runs, get=get))


class ViewSeesLaterCommits(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def latest(session_id: str) -> DiagnosisRun | None:
            async with self.sound.view() as fresh:
                return await fresh.runs.latest(session_id)

        return Overlay(view, runs=Overlay(view.runs, latest=latest))


class ReadsAStringAsJson(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        def parsed(value: Json) -> Json:
            with suppress(TypeError, ValueError):
                return cast(Json, json.loads(cast(str, value)))
            return value

        async def tools(session_id: str, run_id: str) -> Sequence[ToolInvocation]:
            stored = await view.journal.tools(session_id, run_id)
            return [evolve(tool, result=parsed(tool.result)) for tool in stored]

        return Overlay(view, journal=Overlay(view.journal, tools=tools))


class FoldsSessionIds(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def get(session_id: str) -> ChatSession | None:
            return await view.sessions.get(session_id.strip().lower())

        return Overlay(view, sessions=Overlay(view.sessions, get=get))


class SearchesByPattern(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def page(*, query: str | None, before: str | None, limit: int) -> Sequence[SessionOverview]:
            whole = await view.sessions.page(query=None, before=before, limit=EVERYTHING)
            pattern = f"*{query or ''}*".replace("%", "*").replace("_", "?")
            return [one for one in whole if fnmatchcase(one.last_query or "", pattern)][:limit]

        return Overlay(view, sessions=Overlay(view.sessions, page=page))


class CutsTimesToMilliseconds(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def get(session_id: str, run_id: str) -> DiagnosisRun | None:
            run = await view.runs.get(session_id, run_id)
            if run is None:
                return None
            cut = run.created_at.microsecond // 1000 * 1000
            return evolve(run, created_at=run.created_at.replace(microsecond=cut))

        return Overlay(view, runs=Overlay(view.runs, get=get))


class ExpiresALeaseThatEndsNow(BrokenLedger):
    def in_view(self, view: LedgerView) -> object:
        async def expired(*, now: datetime, limit: int) -> Sequence[DiagnosisRun]:
            return await view.runs.expired(now=now + timedelta(microseconds=1), limit=limit)

        return Overlay(view, runs=Overlay(view.runs, expired=expired))
