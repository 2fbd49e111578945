"""Where a conversation is remembered: the last turns, for as long as somebody goes on talking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from casenotes.core.model import MessagePair


class ContextStore(Protocol):
    """Holds conversations and nothing else: no run, no key, no lease.

    Every method may raise ``ContextUnavailable`` when the store cannot be reached, and nothing else; its
    message holds no secret. A store is safe to use from many tasks at once. Session ids are opaque and compared
    exactly. Pairs come back as they were given; their text is clean (``core.text``) before it gets here.
    """

    async def recall(self, session_id: str) -> Sequence[MessagePair]:
        """The remembered pairs, oldest first, at most the window's number of them; none for an unknown session.

        Recalling does not change how long a conversation is remembered. What is returned is the caller's own.
        """
        ...

    async def append(self, session_id: str, pair: MessagePair) -> None:
        """Add a pair as the newest, and forget those past the window.

        Atomic: a reader sees the whole pair or none of it, and of pairs appended at once none is lost.
        The conversation is then remembered for the store's time to live, counted from now.
        """
        ...

    async def clear(self, session_id: str) -> None:
        """Forget the conversation; an unknown one is no error. Other conversations are untouched."""
        ...

    async def ping(self) -> None:
        """Return when the store answers; raise ``ContextUnavailable`` when it does not."""
        ...

    async def close(self) -> None:
        """Let go of connections and files. May be called more than once."""
        ...
