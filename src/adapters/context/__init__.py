"""Where conversations are remembered: in memory, or in an SQLite file of their own."""

from casenotes.adapters.context.memory import MemoryContextStore
from casenotes.adapters.context.sqlite import SqliteContextStore

__all__ = ["MemoryContextStore", "SqliteContextStore"]
