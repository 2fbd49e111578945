"""What a run takes from its surroundings, and tells them: the time, new names, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, TypeAlias

from casenotes.core.model import DiagnosisRun

Clock: TypeAlias = Callable[[], datetime]
"""Gives the time now: aware, in UTC, to the microsecond. It may stand still or step back."""

NewId: TypeAlias = Callable[[], str]
"""Gives a name that no call in any process has given before. Names made later sort later, to the millisecond."""


class RunObserver(Protocol):
    """Is told what becomes of runs, for logs and metrics. Must not raise, and must not wait."""

    def started(self, run: DiagnosisRun) -> None:
        """The run is stored and begins."""
        ...

    def ended(self, run: DiagnosisRun) -> None:
        """The run's end is durable."""
        ...

    def faulted(self, session_id: str, run_id: str | None, what: str, fault: BaseException) -> None:
        """Something of ours went wrong; ``what`` was being done."""
        ...
