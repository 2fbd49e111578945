"""Leases, idempotency keys, degraded runs, typed tool results, and one row for each sequence of a run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    for name in ("degraded", "context_degraded"):
        op.add_column("diagnosis_run", sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("diagnosis_run", sa.Column("lease_owner", sa.Text))
    op.add_column("diagnosis_run", sa.Column("lease_expires_at", moment))
    op.add_column(
        "tool_invocation",
        sa.Column("result_is_json", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_table(
        "idempotency_key",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("body_digest", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("created_at", moment, nullable=False),
    )
    op.create_index("ix_idempotency_key_session", "idempotency_key", ["session_id"])
    op.create_index("ix_chat_session_activity", "chat_session", ["last_active_at", "session_id"])
    op.create_index(
        "ix_diagnosis_run_lease",
        "diagnosis_run",
        ["lease_expires_at"],
        sqlite_where=sa.text("status = 'RUNNING'"),
        postgresql_where=sa.text("status = 'RUNNING'"),
    )
    op.create_index("ux_agent_step_run", "agent_step", ["run_id", "sequence"], unique=True)
    op.create_index("ux_tool_invocation_run", "tool_invocation", ["run_id", "sequence"], unique=True)


def downgrade() -> None:
    op.drop_index("ux_tool_invocation_run", table_name="tool_invocation")
    op.drop_index("ux_agent_step_run", table_name="agent_step")
    op.drop_index("ix_diagnosis_run_lease", table_name="diagnosis_run")
    op.drop_index("ix_chat_session_activity", table_name="chat_session")
    op.drop_table("idempotency_key")
    op.drop_column("tool_invocation", "result_is_json")
    for column in ("lease_expires_at", "lease_owner", "context_degraded", "degraded"):
        op.drop_column("diagnosis_run", column)
