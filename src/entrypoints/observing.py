"""What becomes of runs, told to the ``casenotes`` logger of the standard library: for the library and the commands."""

from __future__ import annotations

import logging

from attrs import frozen

from casenotes.core.errors import CasenotesError
from casenotes.core.model import DiagnosisRun
from casenotes.core.text import clean

_log = logging.getLogger("casenotes")


@frozen
class LoggingObserver:
    """``casenotes.ports.ambient.RunObserver``. A fault of ours is a warning; starts and ends are for debugging."""

    def started(self, run: DiagnosisRun) -> None:
        _log.debug("%s of %s started", run.run_id, run.session_id)

    def ended(self, run: DiagnosisRun) -> None:
        _log.debug("%s of %s ended %s, digest %s", run.run_id, run.session_id, run.status, run.digest)

    def faulted(self, session_id: str, run_id: str | None, what: str, fault: BaseException) -> None:
        # Only errors of our own have words that are safe to repeat.
        words = clean(str(fault)) if isinstance(fault, CasenotesError) else type(fault).__name__
        _log.warning("%s failed%s: %s", what, f" ({run_id})" if run_id else "", words)
