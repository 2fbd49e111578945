"""The isolation report of a ledger."""

from __future__ import annotations

from casenotes.adapters.sql.isolation import SqlIsolationSource
from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.core.baseline.isolation import IsolationReport, isolation_report
from casenotes.core.errors import InvalidSettings
from casenotes.ports.isolation import IsolationSource
from casenotes.ports.ledger import Ledger


async def isolation_of(ledger: Ledger) -> IsolationReport:
    """Compare the figures of whole sessions with those of runs. Raises ``InvalidSettings`` for a ledger in memory."""
    if not isinstance(ledger, SqlLedger):
        raise InvalidSettings("CASENOTES_DATABASE_URL: the figures of sessions are compared in a database")
    source: IsolationSource = SqlIsolationSource(ledger)
    return isolation_report([figures async for figures in source.sessions()])
