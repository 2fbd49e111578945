"""The diagnostician with a language model, behind any OpenAI-compatible endpoint. Needs the extra ``llm``."""

from casenotes.adapters.agents.llm.client import ChatModel
from casenotes.adapters.agents.llm.diagnostician import LlmDiagnostician

__all__ = ["ChatModel", "LlmDiagnostician"]
