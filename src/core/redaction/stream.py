"""Redaction of text that comes in pieces."""

from __future__ import annotations

from attrs import define

from casenotes.core.redaction.private_keys import KEY_BEGIN, KEY_END
from casenotes.core.redaction.rules import redact
from casenotes.core.redaction.values import PAIR_BEGUN


@define
class StreamRedaction:
    """Redacts text that comes in pieces: joined, its output equals ``redact`` of the joined input.

    It lets go of whole lines only, of none inside a private key, and of none whose secret may stand on the next line,
    so that no secret passes in two halves.
    """

    _held: str = ""

    def feed(self, piece: str) -> str:
        """Take a piece; give the text that is safe to send now, perhaps empty."""
        self._held += piece
        if "\n" not in piece:
            return ""
        end = self._held.rfind("\n") + 1
        while (earlier := self._earlier(end)) < end:
            end = earlier
        ready, self._held = self._held[:end], self._held[end:]
        return redact(ready) if ready else ""

    def finish(self) -> str:
        """The rest, once nothing more comes."""
        rest, self._held = self._held, ""
        return redact(rest)

    def _earlier(self, end: int) -> int:
        """The end of an earlier line, if this one parts what belongs together; else the same."""
        for begin, close in reversed(self._keys(end)):
            if begin < end < close:
                end = self._held.rfind("\n", 0, begin) + 1
        last = self._held.rfind("\n", 0, max(0, end - 1)) + 1
        return last if end and PAIR_BEGUN.search(self._held, last, end) else end

    def _keys(self, end: int) -> list[tuple[int, int]]:
        """Where private keys begin and close, in order; one that has not closed by ``end`` closes after it."""
        found = []
        begin = KEY_BEGIN.search(self._held, 0, end)
        while begin is not None:
            close = KEY_END.search(self._held, begin.end(), end)
            found.append((begin.start(), end + 1 if close is None else close.end()))
            begin = None if close is None else KEY_BEGIN.search(self._held, close.end(), end)
        return found
