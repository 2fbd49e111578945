"""Rows of several tables in one statement."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

Types: TypeAlias = Mapping[str, TypeEngine[Any]]


def types_of(columns: Iterable[sa.Column[Any]]) -> Types:
    """Every column that any of the parts has. A name means the same, and has the same type, wherever it stands."""
    return {column.name: column.type for column in columns}


def part(kind: int, source: sa.FromClause, own: Collection[str], types: Types) -> sa.Select[Any]:
    """The rows of one kind, with the columns that are not its own empty."""
    columns = (
        source.c[name] if name in own else sa.cast(sa.null(), type_).label(name)
        for name, type_ in types.items()
    )
    return sa.select(sa.literal_column(str(kind), sa.Integer).label("kind"), *columns)


def in_order(*parts: sa.Select[Any]) -> sa.CompoundSelect[Any]:
    """The rows of all parts, kind by kind, each by ``sequence``."""
    whole = sa.union_all(*parts)
    columns = whole.selected_columns
    return whole.order_by(columns.kind, columns.sequence, columns.id)
