"""The orchestration trace: one nullable JSON column, and nothing else."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    json = sa.JSON().with_variant(JSONB(), "postgresql")
    op.add_column("diagnosis_run", sa.Column("orchestration_trace", json))


def downgrade() -> None:
    op.drop_column("diagnosis_run", "orchestration_trace")
