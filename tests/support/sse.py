"""A strict reader of server-sent events, by the letter of the standard."""

from __future__ import annotations

import json
from typing import Any

from attrs import define, field, frozen


@frozen
class Event:
    """One event: the name it was given, its data, and the object in it."""

    name: str
    data: str

    @property
    def type(self) -> str:
        kind = self.object["type"]
        assert isinstance(kind, str)
        return kind

    @property
    def payload(self) -> Any:
        return self.object["data"]

    @property
    def object(self) -> dict[str, Any]:
        value = json.loads(self.data)
        assert isinstance(value, dict)
        return value


@define
class EventReader:
    """Takes bytes in any pieces; gives whole events. A field that the service has no use for is an error."""

    comments: int = 0
    _held: bytes = b""
    _name: str = ""
    _data: list[str] = field(factory=list)

    def feed(self, piece: bytes) -> list[Event]:
        """The events that end in this piece."""
        self._held += piece
        *lines, self._held = self._held.split(b"\n")
        return [event for line in lines if (event := self._line(line.decode("utf-8"))) is not None]

    def _line(self, line: str) -> Event | None:
        assert "\r" not in line, "a bare CR ends a line: half of the text would be lost"
        if line.startswith(":"):
            self.comments += 1
            return None
        if not line:
            return self._dispatch()
        name, _, value = line.partition(": ")
        assert name in ("event", "data"), line
        if name == "event":
            self._name = value
        else:
            self._data.append(value)
        return None

    def _dispatch(self) -> Event | None:
        if not self._data:
            return None
        event = Event(self._name or "message", "\n".join(self._data))
        self._name, self._data = "", []
        return event


def answer_in(events: list[Event]) -> str:
    """The answer that a whole stream told."""
    return "".join(event.payload for event in events if event.type == "content")
