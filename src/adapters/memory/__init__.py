"""The ledger in memory: for tests, for the demo, and for whoever wants no database."""

from casenotes.adapters.memory.ledger import MemoryLedger

__all__ = ["MemoryLedger"]
