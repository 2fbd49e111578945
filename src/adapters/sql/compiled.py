"""Statements written once in SQLAlchemy's language, and compiled once for each database they are sent to.

SQLAlchemy's own way from a statement to a driver costs more than the statement: the record would be what makes a
diagnosis slow (``docs/performance.md``). So its compiler and its types are used here, and its engine is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import sqlalchemy as sa
from attrs import frozen
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import Executable
from sqlalchemy.sql.compiler import SQLCompiler

Processor: TypeAlias = Callable[[Any], Any]
Row: TypeAlias = dict[str, Any]


@frozen(eq=False)
class Compiled:
    """A statement as a driver takes it.

    ``binds`` are its parameters in their order: name, the value where the statement itself has one, and how a value
    is made ready. ``columns`` are those of its rows that must be made ready, with the way to do it (NULL never is);
    ``names`` are all of them, in their order.
    """

    sql: str
    binds: tuple[tuple[str, Any, Processor | None], ...]
    columns: tuple[tuple[str, Processor], ...]
    names: tuple[str, ...] = ()

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        """The driver's arguments. Raises ``ValueError`` for a value that its column does not take."""
        return [
            value if ready is None or value is None else ready(value)
            for value, ready in [(values.get(name, own), ready) for name, own, ready in self.binds]
        ]

    def finished(self, rows: list[Row]) -> list[Row]:
        """The rows with their values as the models have them; the same dicts."""
        for name, ready in self.columns:
            for row in rows:
                if (value := row[name]) is not None:
                    row[name] = ready(value)
        return rows


_known: Final[dict[tuple[int, str, tuple[str, ...]], tuple[Executable, Compiled]]] = {}


def compiled(statement: Executable, values: Mapping[str, Any], dialect: Dialect) -> Compiled:
    """The statement for this database and these names of values.

    Statements are remembered for as long as the process lives: they are constants of their modules, or come from
    functions that are cached.
    """
    key = (id(statement), dialect.name, tuple(values))
    known = _known.get(key)
    if known is not None:
        return known[1]
    compiler = _compiler(statement, values, dialect)
    if any(bind.expanding for bind in compiler.binds.values()):
        return _expanded(statement, compiler, values, dialect)
    own = compiler.construct_params(_check=False)
    binds = tuple(
        (name, own.get(name), compiler.binds[name].type.dialect_impl(dialect).bind_processor(dialect))
        for name in compiler.positiontup or ()
    )
    names = tuple(str(column.key) for column in getattr(statement, "exported_columns", ()))
    made = Compiled(str(compiler), binds, _columns(statement, dialect), names)
    _known[key] = (statement, made)
    return made


def _compiler(statement: Executable, values: Mapping[str, Any], dialect: Dialect) -> SQLCompiler:
    compilable: Any = statement
    compiler = compilable.compile(dialect=dialect, column_keys=list(values))
    assert isinstance(compiler, SQLCompiler)
    return compiler


def _expanded(
    statement: Executable, compiler: SQLCompiler, values: Mapping[str, Any], dialect: Dialect
) -> Compiled:
    """A statement whose text depends on its values: it has a list of any length in an ``IN``."""
    state = compiler.construct_expanded_state(dict(values))
    binds = tuple(
        (name, state.parameters[name], _single(state.processors.get(name)))
        for name in state.positiontup or ()
    )
    return Compiled(state.statement, binds, _columns(statement, dialect))


def _single(processor: Any) -> Processor | None:
    return processor if callable(processor) else None


def _columns(statement: Executable, dialect: Dialect) -> tuple[tuple[str, Processor], ...]:
    columns: Iterable[sa.ColumnElement[Any]] = getattr(statement, "exported_columns", ())
    ready = (
        (str(column.key), column.type.dialect_impl(dialect).result_processor(dialect, None))
        for column in columns
    )
    return tuple((name, processor) for name, processor in ready if processor is not None)
