"""The schema's way from revision to revision."""

from __future__ import annotations

from casenotes.adapters.migration.reports import Leftovers, MigrationReport, MigrationStatus, Placed, Rows
from casenotes.adapters.migration.run import head_revision, status, upgrade
from casenotes.adapters.migration.scripts import EXPECTED_REVISION

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
