"""Digests of ended runs, chained by session; what is remembered of erased sessions; since when digests are made."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

moment = sa.DateTime(timezone=True)
store_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    for name, kind in (
        ("digest", sa.Text()),
        ("previous_digest", sa.Text()),
        ("chain_position", sa.Integer()),
        ("entry_digests", sa.LargeBinary()),
    ):
        op.add_column("diagnosis_run", sa.Column(name, kind))
    op.add_column(
        "chat_session", sa.Column("ended_run_count", sa.Integer, nullable=False, server_default="0")
    )
    op.add_column("chat_session", sa.Column("last_run_digest", sa.Text))
    op.create_table(
        "session_tombstone",
        sa.Column("id", store_id, sa.Identity(always=False), primary_key=True, autoincrement=True),
        sa.Column("session_digest", sa.Text, nullable=False),
        sa.Column("runs", sa.Integer, nullable=False),
        sa.Column("agent_steps", sa.Integer, nullable=False),
        sa.Column("tool_invocations", sa.Integer, nullable=False),
        sa.Column("cases", sa.Integer, nullable=False),
        sa.Column("ended_run_count", sa.Integer, nullable=False),
        sa.Column("last_run_digest", sa.Text),
        sa.Column("erased_at", moment, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_session_tombstone_session", "session_tombstone", ["session_digest"])
    op.create_index(
        "ix_case_library_historical",
        "case_library",
        ["diagnosis_id"],
        sqlite_where=sa.text("source != 'AUTO'"),
        postgresql_where=sa.text("source != 'AUTO'"),
    )
    op.create_table(
        "ledger_epoch",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("began_at", moment, nullable=False),
    )
    zone = "+00:00" if op.get_context().dialect.name == "postgresql" else ""
    began_at = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}{zone}"
    op.execute(f"INSERT INTO ledger_epoch (name, began_at) VALUES ('digests', '{began_at}')")


def downgrade() -> None:
    op.drop_table("ledger_epoch")
    op.drop_index("ix_case_library_historical", table_name="case_library")
    op.drop_index("ix_session_tombstone_session", table_name="session_tombstone")
    op.drop_table("session_tombstone")
    for column in ("last_run_digest", "ended_run_count"):
        op.drop_column("chat_session", column)
    for column in ("entry_digests", "chain_position", "previous_digest", "digest"):
        op.drop_column("diagnosis_run", column)
