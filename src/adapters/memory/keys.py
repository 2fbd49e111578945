"""Idempotency keys in memory."""

from __future__ import annotations

from attrs import frozen

from casenotes.adapters.memory.state import Draft
from casenotes.adapters.rows import from_row, to_row
from casenotes.core.model import IdempotencyKey


@frozen
class KeysWriter:
    """``casenotes.ports.ledger.Keys``."""

    _draft: Draft

    async def claim(self, key: IdempotencyKey) -> IdempotencyKey | None:
        row = to_row(key)
        holder = self._draft.state.keys.get(key.key)
        if holder is not None:
            return from_row(IdempotencyKey, holder)
        self._draft.replace(keys={**self._draft.state.keys, key.key: row})
        return None
