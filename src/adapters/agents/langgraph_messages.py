"""What a node of a LangGraph graph did, read out of the messages that it gave: steps, and tool calls with results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define, field
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from casenotes.core.text import bounded, clean_json, cut, fold, json_text
from casenotes.core.words import StepStatus
from casenotes.ports.agent import StepTaken, ToolCalled

_MAX_OUTPUT = 16 * 1024
_MAX_NAME = 100


@define
class Reading:
    """Reads the results of one run's nodes. A message is told once, however often it is given again."""

    _seen: dict[int, BaseMessage] = field(factory=dict)
    _ids: set[str] = field(factory=set)
    _calls: dict[str, Mapping[str, Any]] = field(factory=dict)
    """The arguments of the tool calls that a model asked for, by their id."""

    def know(self, state: object) -> None:
        """Pass over the messages in this state: they were there before."""
        for message in _messages(state):
            self._is_new(message)

    def read(
        self, node: str, result: object, error: object, duration_ms: int | None
    ) -> Iterator[StepTaken | ToolCalled]:
        """The steps of a node that ended, at least one, then its tool calls; in the order of its messages."""
        name = fold(node, _MAX_NAME)
        if error is not None:
            yield StepTaken(
                name,
                "node",
                status=StepStatus.FAILED,
                error_message="the node raised an exception",
                duration_ms=duration_ms,
            )
            return
        new = [message for message in _messages(result) if self._is_new(message)]
        said = [message for message in new if isinstance(message, AIMessage)]
        tools = [message for message in new if isinstance(message, ToolMessage)]
        for message in said:
            self._calls.update({str(call["id"]): call["args"] for call in message.tool_calls})
            yield _model_step(name, message, duration_ms)
        if not said:
            yield StepTaken(name, "node", output=_update(result), duration_ms=duration_ms)
        for called in tools:
            yield self._tool(called)

    def _is_new(self, message: BaseMessage) -> bool:
        """By the object, since a message may get its id only after its node has ended, and by the id."""
        known = id(message) in self._seen or (message.id is not None and message.id in self._ids)
        self._seen[id(message)] = message
        if message.id is not None:
            self._ids.add(message.id)
        return not known

    def _tool(self, message: ToolMessage) -> ToolCalled:
        failed = message.status == "error"
        return ToolCalled(
            message.name or "tool",
            self._calls.get(message.tool_call_id, {}),
            message.content,
            status=StepStatus.FAILED if failed else StepStatus.SUCCESS,
            error_message="the tool failed" if failed else None,
        )


def _model_step(node: str, message: AIMessage, duration_ms: int | None) -> StepTaken:
    usage = message.usage_metadata
    model = message.response_metadata.get("model_name") or message.response_metadata.get("model")
    asked = [f"{call['name']}({json_text(clean_json(call['args']))})" for call in message.tool_calls]
    return StepTaken(
        node,
        "model",
        model=model if isinstance(model, str) else None,
        output="\n".join(filter(None, [text_of(message), *asked])) or None,
        input_tokens=None if usage is None else usage["input_tokens"],
        output_tokens=None if usage is None else usage["output_tokens"],
        duration_ms=duration_ms,
    )


def text_of(message: BaseMessage) -> str:
    """The text of a message, whose content may be blocks of several kinds."""
    content = message.content
    if isinstance(content, str):
        return content
    texts = (block if isinstance(block, str) else block.get("text") for block in content)
    return "".join(text for text in texts if isinstance(text, str))


def _messages(state: object) -> Iterator[BaseMessage]:
    """The messages in a state or an update of it: at its top, in its fields, and in lists of them."""
    if isinstance(state, BaseMessage):
        yield state
    elif isinstance(state, Mapping):
        for value in state.values():
            yield from _messages(value)
    elif isinstance(state, Sequence) and not isinstance(state, str | bytes):
        for item in state:
            if isinstance(item, BaseMessage):
                yield item


def _update(result: object) -> str | None:
    """What a node without a message changed, as JSON text."""
    fields = {
        key: value
        for key, value in (result.items() if isinstance(result, Mapping) else ())
        if not any(_messages(value))
    }
    return cut(json_text(bounded(fields).value), _MAX_OUTPUT) if fields else None
