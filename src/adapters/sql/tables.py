"""The tables as the newest revision leaves them. The migrations make them; a test holds the two together."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect

metadata = sa.MetaData()

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class UtcDateTime(sa.TypeDecorator[datetime]):
    """An aware time in UTC. On SQLite fixed-width text, so that its order is the order of time."""

    impl = sa.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> sa.types.TypeEngine[Any]:
        return dialect.type_descriptor(sa.DateTime(timezone=dialect.name == "postgresql"))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time must be aware")
        utc = value.astimezone(UTC)
        return utc if dialect.name == "postgresql" else utc.replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None] | None:
        # Adopted SQLite rows hold times in several forms; SQLAlchemy's own reader refuses all but one. PostgreSQL's
        # come in UTC; those of adopted columns without a zone do not say so.
        return read_moment if dialect.name == "sqlite" else _in_utc


def _in_utc(value: datetime | None) -> datetime | None:
    return value if value is None or value.tzinfo is not None else value.replace(tzinfo=UTC)


def read_moment(value: object) -> datetime | None:
    """A time in UTC from ISO 8601, with or without a zone, or milliseconds since 1970; ``None`` for anything else."""
    try:
        match value:
            case str():
                moment = datetime.fromisoformat(value.strip())
            case int() | float():
                moment = _EPOCH + timedelta(milliseconds=value)
            case _:
                return None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


StoreId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""An id assigned by the store: on SQLite only INTEGER is one."""

JsonColumn = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""JSON in which ``None`` is SQL's NULL."""

_FALSE = sa.false()


def _id() -> sa.Column[int]:
    return sa.Column("id", StoreId, sa.Identity(always=False), primary_key=True, autoincrement=True)


diagnosis_session = sa.Table(
    "diagnosis_session",
    metadata,
    _id(),
    sa.Column("session_id", sa.Text, nullable=False, unique=True),
    sa.Column("query", sa.Text),
    sa.Column("answer", sa.Text),
    sa.Column("status", sa.Text),
    sa.Column("agent_flow", sa.Text),
    sa.Column("self_evaluation", JsonColumn),
    sa.Column("feedback", sa.Text),
    sa.Column("feedback_comment", sa.Text),
    sa.Column("step_count", sa.Integer),
    sa.Column("tool_call_count", sa.Integer),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

chat_session = sa.Table(
    "chat_session",
    metadata,
    sa.Column("session_id", sa.Text, primary_key=True),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("message_pair_count", sa.Integer, nullable=False, server_default="0"),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("last_active_at", UtcDateTime, nullable=False),
    sa.Column("expires_at", UtcDateTime),
    # The head of the chain of its ended runs: ``casenotes.core.seal``.
    sa.Column("ended_run_count", sa.Integer, nullable=False, server_default="0"),
    sa.Column("last_run_digest", sa.Text),
)
sa.Index("ix_chat_session_activity", chat_session.c.last_active_at, chat_session.c.session_id)

diagnosis_run = sa.Table(
    "diagnosis_run",
    metadata,
    _id(),
    sa.Column("run_id", sa.Text, nullable=False, unique=True),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("query", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("agent_flow", sa.Text, nullable=False),
    sa.Column("answer", sa.Text),
    sa.Column("error_message", sa.Text),
    sa.Column("self_evaluation", JsonColumn),
    sa.Column("feedback", sa.Text),
    sa.Column("feedback_comment", sa.Text),
    sa.Column("feedback_at", UtcDateTime),
    sa.Column("step_count", sa.Integer, nullable=False, server_default="0"),
    sa.Column("tool_call_count", sa.Integer, nullable=False, server_default="0"),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sa.Column("finished_at", UtcDateTime),
    sa.Column("orchestration_trace", JsonColumn),
    sa.Column("degraded", sa.Boolean, nullable=False, server_default=_FALSE),
    sa.Column("context_degraded", sa.Boolean, nullable=False, server_default=_FALSE),
    sa.Column("lease_owner", sa.Text),
    sa.Column("lease_expires_at", UtcDateTime),
    sa.Column("digest", sa.Text),
    sa.Column("previous_digest", sa.Text),
    sa.Column("chain_position", sa.Integer),
    sa.Column("entry_digests", sa.LargeBinary),
    sqlite_autoincrement=True,
)
SEAL_COLUMNS = frozenset({"previous_digest", "chain_position", "entry_digests"})
"""Columns that are read to verify a run, and for nothing else."""
run_columns = tuple(column for column in diagnosis_run.c if column.name not in SEAL_COLUMNS)

sa.Index(
    "ix_diagnosis_run_latest", diagnosis_run.c.session_id, diagnosis_run.c.created_at, diagnosis_run.c.id
)
sa.Index(
    "ix_diagnosis_run_lease",
    diagnosis_run.c.lease_expires_at,
    sqlite_where=sa.text("status = 'RUNNING'"),
    postgresql_where=sa.text("status = 'RUNNING'"),
)


def _by_run(entries: sa.Table) -> None:
    """The index of a run's entries, one for each sequence, and of a session's."""
    columns = (entries.c.session_id, entries.c.run_id, entries.c.sequence)
    sa.Index(f"ux_{entries.name}_session_run", *columns, unique=True)


agent_step = sa.Table(
    "agent_step",
    metadata,
    _id(),
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
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("run_id", sa.Text),
    sa.Column("sequence", sa.Integer),
    sqlite_autoincrement=True,
)
_by_run(agent_step)

tool_invocation = sa.Table(
    "tool_invocation",
    metadata,
    _id(),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("step_number", sa.Integer),
    sa.Column("tool_name", sa.Text),
    sa.Column("arguments", JsonColumn),
    sa.Column("result", sa.Text),
    sa.Column("status", sa.Text),
    sa.Column("error_message", sa.Text),
    sa.Column("duration_ms", sa.BigInteger),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("run_id", sa.Text),
    sa.Column("sequence", sa.Integer),
    sa.Column("step_sequence", sa.Integer),
    sa.Column("result_truncated", sa.Boolean, nullable=False, server_default=_FALSE),
    sa.Column("result_size", sa.BigInteger),
    # The text column holds a string as it is and any other JSON value as its JSON text; this tells them apart.
    sa.Column("result_is_json", sa.Boolean, nullable=False, server_default=_FALSE),
    sqlite_autoincrement=True,
)
_by_run(tool_invocation)

case_library = sa.Table(
    "case_library",
    metadata,
    _id(),
    sa.Column("diagnosis_id", sa.Text, nullable=False),
    sa.Column("query", sa.Text),
    sa.Column("answer", sa.Text),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sa.Column("status", sa.Text, nullable=False, server_default="ACTIVE"),
    sa.Column("source", sa.Text, nullable=False, server_default="MANUAL"),
    sa.Column("session_id", sa.Text),
    sqlite_autoincrement=True,
)
sa.Index(
    "ux_case_library_auto",
    case_library.c.diagnosis_id,
    unique=True,
    sqlite_where=sa.text("source = 'AUTO'"),
    postgresql_where=sa.text("source = 'AUTO'"),
)
sa.Index("ix_case_library_session", case_library.c.session_id)
sa.Index(
    "ix_case_library_historical",
    case_library.c.diagnosis_id,
    sqlite_where=sa.text("source != 'AUTO'"),
    postgresql_where=sa.text("source != 'AUTO'"),
)

is_automatic = case_library.c.source == sa.literal_column("'AUTO'")
"""Made of a run by its rating; written as the partial indexes have it, so that they are used."""

idempotency_key = sa.Table(
    "idempotency_key",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("body_digest", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
)
sa.Index("ix_idempotency_key_session", idempotency_key.c.session_id)

session_tombstone = sa.Table(
    "session_tombstone",
    metadata,
    _id(),
    sa.Column("session_digest", sa.Text, nullable=False),
    sa.Column("runs", sa.Integer, nullable=False),
    sa.Column("agent_steps", sa.Integer, nullable=False),
    sa.Column("tool_invocations", sa.Integer, nullable=False),
    sa.Column("cases", sa.Integer, nullable=False),
    sa.Column("ended_run_count", sa.Integer, nullable=False),
    sa.Column("last_run_digest", sa.Text),
    sa.Column("erased_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)
sa.Index("ix_session_tombstone_session", session_tombstone.c.session_digest)

ledger_epoch = sa.Table(
    "ledger_epoch",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("began_at", UtcDateTime, nullable=False),
)
"""Since when the ledger does a thing: a run that ended before ``digests`` has no digest, one that ended later has."""
