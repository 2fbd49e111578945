"""A model's answer while it comes: nothing of it is let go of before it has cited evidence."""

from __future__ import annotations

import re

from attrs import define, field

from casenotes.adapters.agents.llm import failure
from casenotes.adapters.agents.llm.failure import ModelFailed

_CITATIONS = re.compile(r"\[\s*T\s*\d{1,9}(?:\s*(?:,|;|and|&)\s*T?\s*\d{1,9})*\s*\]")
_OPEN = re.compile(r"\[[^\]\n]{0,80}\Z")
"""What may yet become a citation."""

_THOUGHT, _THOUGHT_ENDS = "<think>", "</think>"
"""Between these, some models think aloud: no part of the answer."""


@define
class CitedAnswer:
    """Takes the pieces of an answer and gives what may be sent.

    What was sent cannot be taken back, so where there is evidence (``must_cite``) nothing is let go of until a call
    has been cited: an answer that never does is given up without a trace of it. Citations are brought into one form:
    ``[T1, T2]`` becomes ``[T1] [T2]``.
    """

    must_cite: bool
    sent: str = field(default="", init=False)
    heard: str = field(default="", init=False)
    """All that came, for the record."""
    _held: str = field(default="", init=False)
    _thinking: bool | None = field(default=None, init=False)

    def feed(self, piece: str) -> str:
        """Add a piece; give the text that may be sent now, perhaps empty."""
        self.heard += piece
        self._held += piece
        self._drop_thought()
        if self._thinking is not False:
            return ""
        unfinished = _OPEN.search(self._held)
        end = len(self._held) if unfinished is None else unfinished.start()
        ready = self._held[:end]
        if self.must_cite and not self.sent and _CITATIONS.search(ready) is None:
            return ""
        self._held = self._held[end:]
        return self._release(ready)

    def finish(self) -> str:
        """The rest. Raises ``ModelFailed`` when the answer is empty, or cites nothing though it must."""
        self._drop_thought(at_end=True)
        rest, self._held = self._held, ""
        if not self.sent and not rest.strip():
            raise ModelFailed(failure.EMPTY)
        if self.must_cite and not self.sent and _CITATIONS.search(rest) is None:
            raise ModelFailed(failure.UNCITED)
        return self._release(rest)

    def _release(self, ready: str) -> str:
        ready = _CITATIONS.sub(_in_one_form, ready if self.sent else ready.lstrip())
        self.sent += ready
        return ready

    def _drop_thought(self, *, at_end: bool = False) -> None:
        if self._thinking is None:
            begun = self._held.lstrip()
            if begun.startswith(_THOUGHT):
                self._thinking = True
            elif at_end or not _THOUGHT.startswith(begun):
                self._thinking = False
        if self._thinking:
            _, ended, rest = self._held.partition(_THOUGHT_ENDS)
            if ended or at_end:
                self._held, self._thinking = rest, False


def _in_one_form(found: re.Match[str]) -> str:
    return " ".join(f"[T{number}]" for number in re.findall(r"\d+", found.group(0)))
