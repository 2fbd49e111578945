"""The schema's way from revision to revision.

``EXPECTED_REVISION`` is what a ledger compares its database with when it starts; a test holds it to the newest
revision that ships.
"""

from __future__ import annotations

from casenotes.adapters.migration.reports import Leftovers, MigrationReport, MigrationStatus, Placed, Rows
from casenotes.adapters.migration.run import head_revision, status, upgrade

EXPECTED_REVISION = "0004"

__all__ = [
    "EXPECTED_REVISION",
    "Leftovers",
    "MigrationReport",
    "MigrationStatus",
    "Placed",
    "Rows",
    "head_revision",
    "status",
    "upgrade",
]
