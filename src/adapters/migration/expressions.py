"""The few expressions of the backfill that Postgres and SQLite do not share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.sql import ColumnElement

from casenotes.core.rules import COMPATIBILITY_DIGITS, COMPATIBILITY_PREFIX, compatibility_run_id

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - compared with naive times in UTC


def register(connection: Connection) -> None:
    """Give an SQLite connection the functions that these expressions need; Postgres has its own."""
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.dbapi_connection
        driver.create_function("casenotes_run_id", 1, compatibility_run_id, deterministic=True)
        driver.create_function("casenotes_moment", 1, _moment, deterministic=True)


def run_id(connection: Connection, session_id: ColumnElement[Any]) -> ColumnElement[str]:
    """``core.rules.compatibility_run_id``, in SQL."""
    if connection.dialect.name == "sqlite":
        return sa.func.casenotes_run_id(session_id, type_=sa.Text)
    digest = sa.func.encode(sa.func.sha256(sa.func.convert_to(session_id, "UTF8")), "hex", type_=sa.Text)
    return sa.literal(COMPATIBILITY_PREFIX, sa.Text).concat(
        sa.func.left(digest, COMPATIBILITY_DIGITS, type_=sa.Text)
    )


def moment(connection: Connection, *candidates: ColumnElement[Any]) -> ColumnElement[Any]:
    """The first of these times that is one, as the ledger keeps times; the start of 1970 when none is."""
    if connection.dialect.name == "sqlite":
        times = [sa.func.casenotes_moment(candidate) for candidate in candidates]
        return sa.func.coalesce(*times, sa.literal(_stored(_EPOCH)))
    return sa.func.coalesce(*candidates, sa.literal_column("TIMESTAMPTZ '1970-01-01 00:00:00+00'"))


def size(connection: Connection, text: ColumnElement[Any]) -> ColumnElement[int]:
    """The bytes of a text in UTF-8; 0 for none."""
    if connection.dialect.name == "sqlite":
        return sa.func.coalesce(sa.func.length(sa.cast(text, sa.LargeBinary)), 0)
    return sa.func.coalesce(sa.func.octet_length(text), 0)


def json(connection: Connection, value: ColumnElement[Any]) -> ColumnElement[Any]:
    """Stored JSON as it is. On SQLite, which takes any text for JSON, what is none becomes a JSON string."""
    if connection.dialect.name == "sqlite":
        return sa.case(
            (sa.or_(value.is_(None), sa.func.json_valid(value)), value), else_=sa.func.json_quote(value)
        )
    return value


def _moment(value: object) -> str | None:
    """A time as old rows may hold it (ISO 8601 with or without a zone, milliseconds since 1970) in fixed-width text."""
    try:
        match value:
            case str():
                time = datetime.fromisoformat(value.strip())
            case int() | float():
                time = _EPOCH + timedelta(milliseconds=value)
            case _:
                return None
        return _stored(time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None))
    except (ValueError, OverflowError):
        return None


def _stored(time: datetime) -> str:
    return time.isoformat(sep=" ", timespec="microseconds")
