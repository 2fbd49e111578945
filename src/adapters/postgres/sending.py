"""Ways to send statements to PostgreSQL that a transaction of ``adapters.sql`` has not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy.sql import Executable

from casenotes.adapters.postgres.pool import PostgresConnection, PostgresConnections
from casenotes.adapters.sql.compiled import compiled
from casenotes.adapters.sql.connections import Row
from casenotes.adapters.sql.dialect import POSTGRES
from casenotes.adapters.sql.transaction import translated

T = TypeVar("T")


async def in_one(
    connections: PostgresConnections,
    send: Callable[[PostgresConnection], Awaitable[T]],
    refusals: tuple[type[Exception], ...] = (Exception,),
) -> T | None:
    """What came of one way to the server, which is a transaction of its own; ``None`` when the server refused it so.

    It may have been refused for a part of it only, and why is better told of each: each may try alone. Raises
    ``LedgerUnavailable`` where nobody knows what came of it, when no connection is to be had, and for other refusals.
    """
    with translated(POSTGRES):
        async with connections.connection() as used:
            try:
                if not used.takes_single_statements:
                    await used.begin()
                result = await send(used)
                if not used.takes_single_statements:
                    await used.commit()
            except refusals:
                if used.is_lost:
                    raise
                return None
            return result


async def each_of(
    used: PostgresConnection, statement: Executable, values: Sequence[Mapping[str, Any]]
) -> Sequence[Row]:
    """The rows of a statement that is done for each of these values, all in one way to the server."""
    made = compiled(statement, values[0], POSTGRES.compiler)
    return made.finished(await used.fetch_each(made.sql, [made.arguments(one) for one in values]))
