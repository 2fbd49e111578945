"""What run isolation changed: the figures of whole sessions, as the old system counted, against those of runs.

A drift is explained when it is, to the row, the rows of other runs of the same session and the rows that are in no
run. What is left over is not explained: a wrong count, or a row of a run that the session does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import field, frozen

from casenotes.core.text import JsonObject


@frozen
class Counted:
    """A number of steps and of tool calls."""

    steps: int = 0
    tools: int = 0

    def of(self, kind: str) -> int:
        return self.steps if kind == "steps" else self.tools

    def __add__(self, other: Counted) -> Counted:
        return Counted(self.steps + other.steps, self.tools + other.tools)


@frozen
class SessionFigures:
    """One session as its rows are. ``all``: its steps and tool calls, of whatever run, as the old system counted.

    ``reported``: run -> what the run itself says it has. ``rows``: run -> its rows; ``None`` stands for no run.
    ``recorded``: what the old system had written down as the session's counts, where it had.
    """

    session_id: str
    all: Counted
    reported: Mapping[str, Counted]
    rows: Mapping[str | None, Counted]
    recorded: Counted | None = None


KINDS = ("steps", "tools")


@frozen
class IsolationDrift:
    """A run (``None``: the session has none) whose figure is not that of its session, and the rows that make it so.

    ``of_run`` is what the run says it has, ``rows_of_run`` what it has; ``astray`` counts rows of runs that the
    session does not have.
    """

    session_id: str
    run_id: str | None
    kind: str
    of_session: int
    of_run: int
    rows_of_run: int
    of_other_runs: Mapping[str, int]
    of_no_run: int
    astray: int

    @property
    def difference(self) -> int:
        return self.of_session - self.of_run

    @property
    def unexplained(self) -> int:
        """How many rows are not accounted for: a run that miscounts itself, and rows astray, do not cancel out."""
        left = self.difference - sum(self.of_other_runs.values()) - self.of_no_run - self.astray
        return abs(left) + self.astray

    @property
    def is_explained(self) -> bool:
        return self.unexplained == 0

    def as_json(self) -> JsonObject:
        return {
            "sessionId": self.session_id,
            "runId": self.run_id,
            "metric": self.kind,
            "ofSession": self.of_session,
            "ofRun": self.of_run,
            "rowsOfRun": self.rows_of_run,
            "ofOtherRuns": dict(self.of_other_runs),
            "ofNoRun": self.of_no_run,
            "astray": self.astray,
            "unexplained": self.unexplained,
        }


@frozen
class IsolationReport:
    """All drifts, and how much was compared. ``misrecorded``: the old system's own number was never its rows'."""

    sessions: int = 0
    runs: int = 0
    all: Counted = field(default=Counted())
    drifts: tuple[IsolationDrift, ...] = ()
    misrecorded: tuple[tuple[str, Counted, Counted], ...] = ()

    @property
    def unexplained(self) -> list[IsolationDrift]:
        return [drift for drift in self.drifts if not drift.is_explained]

    def as_json(self) -> JsonObject:
        return {
            "sessions": self.sessions,
            "runs": self.runs,
            "steps": self.all.steps,
            "tools": self.all.tools,
            "drifts": [drift.as_json() for drift in self.drifts],
            "explained": not self.unexplained,
            "misrecorded": [
                {
                    "sessionId": session_id,
                    "recorded": {"steps": said.steps, "tools": said.tools},
                    "rows": {"steps": had.steps, "tools": had.tools},
                }
                for session_id, said, had in self.misrecorded
            ],
        }


def drifts_of(session: SessionFigures) -> Iterator[IsolationDrift]:
    """Each run's drifts, and where a session has no run, that of its rows."""
    none: list[tuple[str | None, Counted]] = [(None, Counted())]
    for run_id, reported in [*session.reported.items()] or none:
        for kind in KINDS:
            drift = _drift(session, run_id, reported, kind)
            if drift.difference or not drift.is_explained:
                yield drift


def _drift(session: SessionFigures, run_id: str | None, reported: Counted, kind: str) -> IsolationDrift:
    others = {
        other: count
        for other in session.reported
        if other != run_id and (count := session.rows.get(other, Counted()).of(kind))
    }
    return IsolationDrift(
        session_id=session.session_id,
        run_id=run_id,
        kind=kind,
        of_session=session.all.of(kind),
        of_run=reported.of(kind),
        rows_of_run=0 if run_id is None else session.rows.get(run_id, Counted()).of(kind),
        of_other_runs=others,
        of_no_run=session.rows.get(None, Counted()).of(kind),
        astray=sum(
            count.of(kind)
            for run, count in session.rows.items()
            if run is not None and run not in session.reported
        ),
    )


def isolation_report(sessions: Iterable[SessionFigures]) -> IsolationReport:
    """The report over these sessions."""
    count = runs = 0
    total = Counted()
    drifts: list[IsolationDrift] = []
    misrecorded: list[tuple[str, Counted, Counted]] = []
    for session in sessions:
        count += 1
        runs += len(session.reported)
        total += session.all
        drifts += drifts_of(session)
        # Runs that came after the migration add rows that the old system could not count.
        had = session.rows.get(next(iter(session.reported), None), Counted())
        if session.recorded is not None and session.recorded != had:
            misrecorded.append((session.session_id, session.recorded, had))
    return IsolationReport(count, runs, total, tuple(drifts), tuple(misrecorded))
