"""The revisions of the ledger's schema, run by ``casenotes.adapters.migration`` or by ``alembic``."""
