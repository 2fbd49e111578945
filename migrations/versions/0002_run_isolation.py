"""Run isolation: a session has many runs, and a step or tool call belongs to one of them.

Every session of the old system becomes one compatibility run: after this revision, in transactions of their own, so
that no table is locked for long (``casenotes.adapters.migration.backfill``). The old ``diagnosis_session`` table stays
as it is, and writable.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects.postgresql import JSONB

from casenotes.adapters.migration import backfill, fitting

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

store_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
json = sa.JSON().with_variant(JSONB(), "postgresql")
moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    if not context.is_offline_mode():
        fitting.fit(op.get_bind())
    create_tables()
    add_columns()
    create_indexes()


def create_tables() -> None:
    op.create_table(
        "chat_session",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("message_pair_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("last_active_at", moment, nullable=False),
        sa.Column("expires_at", moment),
    )
    op.create_table(
        "diagnosis_run",
        sa.Column("id", store_id, sa.Identity(always=False), primary_key=True, autoincrement=True),
        sa.Column("run_id", sa.Text, nullable=False, unique=True),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("agent_flow", sa.Text, nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("error_message", sa.Text),
        sa.Column("self_evaluation", json),
        sa.Column("feedback", sa.Text),
        sa.Column("feedback_comment", sa.Text),
        sa.Column("feedback_at", moment),
        sa.Column("step_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("tool_call_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.Column("finished_at", moment),
        sqlite_autoincrement=True,
    )


def add_columns() -> None:
    # ADD COLUMN only: SQLite's table rebuild copies every row and can lose what refers to them.
    for table in ("agent_step", "tool_invocation"):
        op.add_column(table, sa.Column("run_id", sa.Text))
        op.add_column(table, sa.Column("sequence", sa.Integer))
    op.add_column("tool_invocation", sa.Column("step_sequence", sa.Integer))
    op.add_column(
        "tool_invocation",
        sa.Column("result_truncated", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.add_column("tool_invocation", sa.Column("result_size", sa.BigInteger))
    op.add_column("case_library", sa.Column("status", sa.Text, nullable=False, server_default="ACTIVE"))
    op.add_column("case_library", sa.Column("source", sa.Text, nullable=False, server_default="MANUAL"))
    op.add_column("case_library", sa.Column("session_id", sa.Text))
    # What is in the library at this moment was all put there by the old system, under its session's id.
    op.execute("UPDATE case_library SET source = 'HISTORICAL', session_id = diagnosis_id")


def create_indexes() -> None:
    op.create_index("ix_diagnosis_run_latest", "diagnosis_run", ["session_id", "created_at", "id"])
    for table in ("agent_step", "tool_invocation"):  # another tool may have made one of this name
        op.create_index(f"ix_{table}_session", table, ["session_id"], if_not_exists=True)
    op.create_index("ix_case_library_session", "case_library", ["session_id"])
    op.create_index(
        "ux_case_library_auto",
        "case_library",
        ["diagnosis_id"],
        unique=True,
        sqlite_where=sa.text("source = 'AUTO'"),
        postgresql_where=sa.text("source = 'AUTO'"),
    )


def downgrade() -> None:
    """Back to the old system. What was recorded since 0002 is lost; what the old system wrote stays."""
    if context.is_offline_mode():
        raise NotImplementedError("which rows to remove can be told only on a connection")
    backfill.forget_new_runs(op.get_bind())
    for index, table in (
        ("ux_case_library_auto", "case_library"),
        ("ix_case_library_session", "case_library"),
        ("ix_tool_invocation_session", "tool_invocation"),
        ("ix_agent_step_session", "agent_step"),
    ):
        op.drop_index(index, table_name=table)
    for column in ("session_id", "source", "status"):
        op.drop_column("case_library", column)
    for column in ("result_size", "result_truncated", "step_sequence", "sequence", "run_id"):
        op.drop_column("tool_invocation", column)
    for column in ("sequence", "run_id"):
        op.drop_column("agent_step", column)
    op.drop_table("diagnosis_run")
    op.drop_table("chat_session")
