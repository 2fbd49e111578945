"""Steps and tool calls are found by session and run together, by one index instead of two.

With one for each of them, a database that knew little yet of its rows looked through all of a session's for those of a
run, and took longer with every run of the session.
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

ENTRIES = ("agent_step", "tool_invocation")


def upgrade() -> None:
    for table in ENTRIES:
        op.create_index(f"ux_{table}_session_run", table, ["session_id", "run_id", "sequence"], unique=True)
        op.drop_index(f"ux_{table}_run", table_name=table)
        op.drop_index(f"ix_{table}_session", table_name=table)


def downgrade() -> None:
    for table in ENTRIES:
        op.create_index(f"ix_{table}_session", table, ["session_id"])
        op.create_index(f"ux_{table}_run", table, ["run_id", "sequence"], unique=True)
        op.drop_index(f"ux_{table}_session_run", table_name=table)
