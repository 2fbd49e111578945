"""What a database gives the SQL ledger: connections, each had for a while and for one transaction at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

Row = dict[str, Any]


class Connection(Protocol):
    """A connection to a database. Errors are the driver's own: ``transaction`` translates them."""

    @property
    def takes_single_statements(self) -> bool:
        """Whether a statement that is a whole transaction may be sent without ``begin``."""
        ...

    async def begin(self) -> None:
        """Begin a transaction: a writing one, or one that reads a snapshot and that the database lets write nothing."""
        ...

    async def fetch(self, sql: str, arguments: Sequence[Any]) -> list[Row]:
        """The rows of a statement, each a dict of its own."""
        ...

    async def fetch_plain(self, sql: str, arguments: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """The rows of a statement, each its values in the order of the columns."""
        ...

    async def execute(self, sql: str, arguments: Sequence[Any]) -> int:
        """How many rows a statement wrote."""
        ...

    async def commit(self) -> None:
        """Make the transaction durable; return only then."""
        ...


class Connections(Protocol):
    """The connections of one kind, writing or reading, to one database."""

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """A connection for the length of the block; what is not committed in it is undone, however it ends.

        Raises ``LedgerUnavailable`` when none becomes free in time, and the driver's errors.
        """
        ...

    async def close(self) -> None:
        """Close them all. May be called more than once."""
        ...
