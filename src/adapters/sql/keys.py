"""Idempotency keys in SQL."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa
from attrs import frozen

from casenotes.adapters.rows import from_row, to_row
from casenotes.adapters.sql.dialect import Dialect, Insert
from casenotes.adapters.sql.tables import idempotency_key
from casenotes.adapters.sql.transaction import Transaction
from casenotes.core.model import IdempotencyKey

_HOLDER = sa.select(idempotency_key).where(idempotency_key.c.key == sa.bindparam("of_key"))


@cache
def _claim(dialect: Dialect) -> Insert:
    return dialect.insert(idempotency_key).on_conflict_do_nothing(index_elements=["key"])


@frozen
class KeysWriter:
    """``casenotes.ports.ledger.Keys``."""

    _transaction: Transaction

    async def claim(self, key: IdempotencyKey) -> IdempotencyKey | None:
        row = to_row(key)
        while await self._transaction.run(_claim(self._transaction.dialect), row) == 0:
            holder = await self._transaction.one(_HOLDER, {"of_key": key.key})
            if holder is not None:
                return from_row(IdempotencyKey, holder)
            # Its holder was erased between the two statements: the name is free again.
        return None
