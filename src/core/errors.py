"""What can go wrong, in the words of the domain. A message is safe to show to a caller as it stands."""

from __future__ import annotations


class CasenotesError(Exception):
    """The root of every error that casenotes raises on purpose."""


class InvalidInput(CasenotesError):
    """A value from outside was refused; nothing was written.

    ``field`` is the name of the value as the caller wrote it (on the wire: ``sessionId``).
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class NotFound(CasenotesError):
    """What was asked for does not exist, or belongs to somebody else: the two are told apart nowhere."""


class SessionNotFound(NotFound):
    """No chat session, run or historical row has this session id."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session not found: {session_id}")
        self.session_id = session_id


class RunNotFound(NotFound):
    """The session has no such run. A run of another session is, to the caller, a run that is not there."""

    def __init__(self, session_id: str, run_id: str) -> None:
        super().__init__(f"run not found in session {session_id}: {run_id}")
        self.session_id = session_id
        self.run_id = run_id


class InvalidTransition(CasenotesError):
    """A run that has ended was asked to go on or to end again."""

    def __init__(self, run_id: str, message: str = "the run has already ended") -> None:
        super().__init__(f"{run_id}: {message}")
        self.run_id = run_id


class RunAlreadyExists(CasenotesError):
    """The run id is taken; the stored run was not touched."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run already exists: {run_id}")
        self.run_id = run_id


class ForeignEvent(CasenotesError):
    """An orchestration event of one run was folded into the trace of another."""


class IdempotencyConflict(CasenotesError):
    """The idempotency key belongs to a request that still runs, or to one with another body."""


class TooManyRunning(CasenotesError):
    """As many executions run in this process as are allowed; try again later."""


class ShuttingDown(CasenotesError):
    """The process is going away and takes no new execution."""


class LedgerUnavailable(CasenotesError):
    """The database that holds the ledger could not be reached, or refused the work."""


class SchemaOutOfDate(CasenotesError):
    """The ledger's tables are of another revision than this version needs; the message says what to run."""


class ContextUnavailable(CasenotesError):
    """The conversation store could not be reached in time; a run goes on without earlier turns."""


class InvalidEvidence(CasenotesError):
    """An evidence pack or source is missing a part or malformed; the message names file and field."""


class InvalidSettings(CasenotesError):
    """A setting is wrong; the message names the variable, the shape of its value and what is allowed."""
