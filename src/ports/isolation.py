"""Where the figures of an isolation report come from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from casenotes.core.baseline.isolation import SessionFigures


class IsolationSource(Protocol):
    """Counts the rows of a ledger's sessions. Reads only."""

    def sessions(self) -> AsyncIterator[SessionFigures]:
        """Every session that has a run, a step or a tool call, once, all as of one moment.

        ``all`` is counted by session id alone, ``rows`` by session and run id, each from the rows themselves;
        ``reported`` is what the stored runs say, oldest run first: a RUNNING one, which says nothing yet, counts by
        its rows. Raises ``LedgerUnavailable``.
        """
        ...
