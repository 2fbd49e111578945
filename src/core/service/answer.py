"""The answer while it is written: what may be sent now, so that all that was sent is exactly what is stored."""

from __future__ import annotations

from attrs import define, field

from casenotes.core.evaluation import supported
from casenotes.core.redaction import StreamRedaction
from casenotes.core.text import settle


@define
class AnswerInProgress:
    """Takes pieces, lets go of clean ones: secrets redacted, citations of calls that were not made replaced."""

    unsupported: int = 0
    _redaction: StreamRedaction = field(factory=StreamRedaction)
    _sent: list[str] = field(factory=list)

    def take(self, piece: str, tool_count: int) -> str:
        """Add a piece, made after ``tool_count`` tool calls; give the text that may be sent now, perhaps empty."""
        return self._release(self._redaction.feed(settle(piece)), tool_count)

    def finish(self, tool_count: int) -> str:
        """Give the rest."""
        return self._release(self._redaction.finish(), tool_count)

    @property
    def text(self) -> str:
        """All that was let go of."""
        return "".join(self._sent)

    def _release(self, ready: str, tool_count: int) -> str:
        if ready:
            ready, count = supported(ready, tool_count)
            self.unsupported += count
            self._sent.append(ready)
        return ready
