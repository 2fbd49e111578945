"""One call of a model: asked over the OpenAI protocol, within a time that covers every retry."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeAlias

import openai
from attrs import define, field

from casenotes.adapters.agents.llm import failure
from casenotes.adapters.agents.llm.failure import ModelFailed
from casenotes.adapters.agents.llm.retrying import ATTEMPTS, is_passing, pause_before
from casenotes.adapters.agents.llm.wire import (
    Extras,
    Message,
    Said,
    Shape,
    piece,
    sent,
    ways_to_ask,
    ways_to_tell,
    whole,
)

CONNECT_TIMEOUT = 5.0
"""Seconds that connecting may take, at the most."""

MAX_CHARS = 40_000
"""Characters of one answer; a model that goes on past them is cut."""

_NOT_UNDERSTOOD = frozenset({400, 404, 415, 422, 501})
"""What servers answer to a field of the request that they do not know; they are asked again without it."""

Sleep: TypeAlias = Callable[[float], Awaitable[None]]


class _NotUnderstood(ModelFailed):
    """The server refused the way in which it was asked, it may be."""


@define(eq=False)
class ChatModel:
    """A model behind an OpenAI-compatible endpoint. Serves many runs at once and keeps nothing of them.

    ``timeout``: seconds that one call may take in all, retries included. What is kept is which of the ways to ask
    the server has understood. Every failure is a ``ModelFailed``; only cancellation passes through as it is.
    """

    base_url: str = field(repr=False)
    name: str
    timeout: float
    api_key: str | None = field(default=None, repr=False)
    sleep: Sleep = field(default=asyncio.sleep, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    _client: openai.AsyncOpenAI = field(init=False, repr=False)
    _understood: dict[str, int] = field(factory=dict, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        connect = min(CONNECT_TIMEOUT, self.timeout)
        self._client = openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=self.api_key or "none",
            timeout=openai.Timeout(self.timeout, connect=connect),
            max_retries=0,  # ours keep within the time of the call
        )
        # The SDK reads these from the environment; they are nobody's business at another endpoint.
        self._client.organization = self._client.project = None

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.close()

    async def ask(self, messages: Sequence[Message], shape: Shape, within: float) -> Said:
        """One answer of this shape, as text that should hold it; in at most ``within`` seconds.

        The server is asked for the shape as structured output, else as a tool's arguments, else in words alone.
        """
        seconds = min(within, self.timeout)
        async with _within(seconds):
            return whole(await self._in_some_way("ask", ways_to_ask(shape), messages, seconds))

    async def tell(self, messages: Sequence[Message], within: float) -> AsyncGenerator[Said]:
        """The pieces of an answer as they come, in at most ``within`` seconds; tokens with the last.

        Raises ``ModelFailed`` where it does not come to its end, perhaps after some pieces.
        """
        seconds = min(within, self.timeout)
        deadline = self.clock() + seconds
        async with _within(seconds):
            stream = await self._in_some_way("tell", ways_to_tell(), messages, seconds)
        length, ended = 0, False
        async with aclosing(_chunks(stream)) as chunks:
            while True:
                # The time-out is for the model alone: it must not strike while a piece is being recorded.
                async with _within(deadline - self.clock(), of=seconds):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    break
                said, reason = piece(chunk)
                length += len(said.text)
                if said.text or said.input_tokens is not None:
                    yield said
                if length > MAX_CHARS or reason == "length":
                    raise ModelFailed(failure.TOO_LONG)
                if reason == "content_filter":
                    raise ModelFailed(failure.DECLINED)
                ended = ended or reason is not None
        if not ended:
            raise ModelFailed(failure.CUT if length else failure.UNREADABLE)

    async def _in_some_way(
        self, what: str, ways: Sequence[Extras], messages: Sequence[Message], seconds: float
    ) -> Any:
        """What the server answers when it is asked in the first of these ways that it understands."""
        deadline = self.clock() + seconds
        first = self._understood.get(what, 0)
        for number, extras in enumerate(ways[first:], first):
            try:
                answer = await self._request(messages, extras, seconds, deadline)
            except _NotUnderstood:
                if number == len(ways) - 1:
                    raise
            else:
                self._understood[what] = number
                return answer
        raise AssertionError("there is a last way")

    async def _request(
        self, messages: Sequence[Message], extras: Extras, seconds: float, deadline: float
    ) -> Any:
        """Ask, and again after a pause where that may help and there is time for it."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                # No temperature and no most of tokens: some models refuse the one, and servers differ in the
                # other's name.
                return await self._client.chat.completions.create(
                    model=self.name, messages=sent(messages), **extras
                )
            except openai.APITimeoutError:
                raise ModelFailed(failure.too_slow(seconds)) from None
            except openai.APIStatusError as answer:
                status, retry_after = answer.status_code, answer.response.headers.get("retry-after")
                why = failure.refused(status)
                if status in _NOT_UNDERSTOOD:
                    raise _NotUnderstood(why) from None
                if not is_passing(status):
                    raise ModelFailed(why) from None
            except openai.APIConnectionError:
                why, retry_after = failure.UNREACHABLE, None
            except Exception:  # whatever the SDK makes of a server that talks nonsense
                raise ModelFailed(failure.UNREADABLE) from None
            pause = pause_before(attempt, retry_after, random.random())
            if attempt == ATTEMPTS or self.clock() + pause >= deadline:
                break
            await self.sleep(pause)
        raise ModelFailed(why)


@asynccontextmanager
async def _within(seconds: float, of: float | None = None) -> AsyncIterator[None]:
    """Raises ``ModelFailed`` when the block takes longer; it tells of the ``of`` seconds that this is the rest of."""
    try:
        async with asyncio.timeout(max(seconds, 0.0)):
            yield
    except TimeoutError:
        raise ModelFailed(failure.too_slow(seconds if of is None else of)) from None


async def _chunks(stream: Any) -> AsyncGenerator[Any]:
    """The chunks of a stream, which is closed in the end."""
    try:
        async for chunk in stream:
            yield chunk
    except Exception:  # cut, or no event stream: the SDK has no one error for it
        raise ModelFailed(failure.CUT) from None
    finally:
        await stream.close()
