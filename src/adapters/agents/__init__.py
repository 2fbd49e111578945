"""The diagnosticians."""

from casenotes.adapters.agents.embedded import EmbeddedDiagnostician

__all__ = ["EmbeddedDiagnostician"]
