"""What is said to an OpenAI-compatible server, and what is read out of its answers; both without trust in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from attrs import frozen
from openai.types.chat import ChatCompletionMessageParam

from casenotes.adapters.agents.llm import failure
from casenotes.adapters.agents.llm.failure import ModelFailed
from casenotes.core.text import clean

Extras: TypeAlias = dict[str, Any]
"""Fields of a request besides the model and the messages."""


@frozen
class Message:
    """A message to the model. It is cleaned when it is sent: no secret reaches a model."""

    role: Literal["system", "user", "assistant"]
    text: str


@frozen
class Said:
    """What a model said, or a piece of it, and the tokens that it counted, if it did."""

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None


@frozen
class Shape:
    """The JSON that is wanted: its name, and its JSON schema."""

    name: str
    schema: dict[str, Any]


def sent(messages: Sequence[Message]) -> list[ChatCompletionMessageParam]:
    """The messages as they are sent, cleaned."""
    made: list[ChatCompletionMessageParam] = []
    for message in messages:
        text = clean(message.text)
        match message.role:
            case "system":
                made.append({"role": "system", "content": text})
            case "user":
                made.append({"role": "user", "content": text})
            case "assistant":
                made.append({"role": "assistant", "content": text})
    return made


def ways_to_ask(shape: Shape) -> list[Extras]:
    """Ways to ask for JSON, the strictest first; the last is understood everywhere."""
    function = {"name": shape.name, "parameters": shape.schema}
    return [
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": shape.name, "schema": shape.schema, "strict": True},
            }
        },
        {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": shape.name}},
        },
        {},
    ]


def ways_to_tell() -> list[Extras]:
    """Ways to ask for a stream: with the tokens counted, where the server can."""
    return [{"stream": True, "stream_options": {"include_usage": True}}, {"stream": True}]


def whole(completion: Any) -> Said:
    """What a completion says: its text, or the arguments of its first tool call. Raises ``ModelFailed``."""
    try:
        message = completion.choices[0].message
        reason = completion.choices[0].finish_reason
        text = message.tool_calls[0].function.arguments if message.tool_calls else message.content
        refusal = message.refusal
    except (AttributeError, IndexError, KeyError, TypeError):  # a page, a list, an object of another kind
        raise ModelFailed(failure.UNREADABLE) from None
    if refusal or reason == "content_filter":
        raise ModelFailed(failure.DECLINED)
    if not isinstance(text, str) or not text.strip():
        raise ModelFailed(failure.EMPTY)
    return Said(text, *_tokens(completion))


def piece(chunk: Any) -> tuple[Said, str | None]:
    """What a chunk of a stream says, and the reason for the end if it is the last. Raises ``ModelFailed``."""
    try:
        choice = chunk.choices[0] if chunk.choices else None  # the chunk that counts tokens has none
        delta = choice.delta if choice is not None else None
        text = delta.content if delta is not None else None
        refusal = delta.refusal if delta is not None else None
        reason = choice.finish_reason if choice is not None else None
    except (AttributeError, IndexError, KeyError, TypeError):
        raise ModelFailed(failure.UNREADABLE) from None
    if refusal:
        raise ModelFailed(failure.DECLINED)
    if text is not None and not isinstance(text, str):
        raise ModelFailed(failure.UNREADABLE)
    return Said(text or "", *_tokens(chunk)), reason if isinstance(reason, str) else None


def _tokens(answer: Any) -> tuple[int | None, int | None]:
    usage = getattr(answer, "usage", None)
    counted = (getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens"))
    read, written = (
        number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None
        for number in counted
    )
    return read, written
