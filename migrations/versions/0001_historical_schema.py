"""The historical schema: a session and its one diagnosis are the same thing."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

store_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
json = sa.JSON().with_variant(JSONB(), "postgresql")
moment = sa.DateTime(timezone=True)


def id_column() -> sa.Column[int]:
    return sa.Column("id", store_id, sa.Identity(always=False), primary_key=True, autoincrement=True)


def upgrade() -> None:
    op.create_table(
        "diagnosis_session",
        id_column(),
        sa.Column("session_id", sa.Text, nullable=False, unique=True),
        sa.Column("query", sa.Text),
        sa.Column("answer", sa.Text),
        sa.Column("status", sa.Text),
        sa.Column("agent_flow", sa.Text),
        sa.Column("self_evaluation", json),
        sa.Column("feedback", sa.Text),
        sa.Column("feedback_comment", sa.Text),
        sa.Column("step_count", sa.Integer),
        sa.Column("tool_call_count", sa.Integer),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "agent_step",
        id_column(),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("step_number", sa.Integer),
        sa.Column("agent_name", sa.Text),
        sa.Column("step_type", sa.Text),
        sa.Column("model", sa.Text),
        sa.Column("input", sa.Text),
        sa.Column("output", sa.Text),
        sa.Column("status", sa.Text),
        sa.Column("error_message", sa.Text),
        sa.Column("input_tokens", sa.BigInteger),
        sa.Column("output_tokens", sa.BigInteger),
        sa.Column("duration_ms", sa.BigInteger),
        sa.Column("created_at", moment, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "tool_invocation",
        id_column(),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("step_number", sa.Integer),
        sa.Column("tool_name", sa.Text),
        sa.Column("arguments", json),
        sa.Column("result", sa.Text),
        sa.Column("status", sa.Text),
        sa.Column("error_message", sa.Text),
        sa.Column("duration_ms", sa.BigInteger),
        sa.Column("created_at", moment, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "case_library",
        id_column(),
        sa.Column("diagnosis_id", sa.Text, nullable=False),
        sa.Column("query", sa.Text),
        sa.Column("answer", sa.Text),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    # The tables may be the old system's own, adopted by stamping this revision: they are left alone.
    raise NotImplementedError("0001 is the old system's schema; drop the database to be rid of it")
