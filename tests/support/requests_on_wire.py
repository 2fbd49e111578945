"""What a client sends to a server, told apart into requests: whole, and named by the SQL or command in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TypeAlias

Request: TypeAlias = tuple[bytes, str]
"""The bytes after which the server answers, and what they ask for; an empty name for greetings and preparations."""

_ASKS_FOR_ANOTHER_GREETING = (80877103, 80877104)  # SSLRequest, GSSENCRequest


class Requests(ABC):
    """Takes the bytes of one connection as they come."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, data: bytes) -> Iterator[Request]:
        """The requests that these bytes complete."""
        self._kept += data
        while (request := self._next()) is not None:
            yield request

    @property
    def unfinished(self) -> bytes:
        """What has come of a request that is not complete."""
        return self._kept

    @abstractmethod
    def _next(self) -> Request | None: ...


class PostgresRequests(Requests):
    """A simple query, or all messages up to a Sync. A prepared statement is named by its SQL at each execution."""

    def __init__(self) -> None:
        super().__init__()
        self._greeted = False
        self._prepared: dict[bytes, str] = {}

    def _next(self) -> Request | None:
        if not self._greeted:
            return self._greeting()
        end, name = 0, ""
        while (message := self._message(end)) is not None:
            kind, body, end = message
            match kind:
                case b"P":
                    statement, sql = body.split(b"\0", 2)[:2]
                    self._prepared[statement] = sql.decode()
                case b"B":
                    name = self._prepared[body.split(b"\0", 2)[1]]
                case b"Q":
                    name = body.rstrip(b"\0").decode()
            if kind not in (b"P", b"B", b"D", b"E", b"C"):
                return self._taken(end), " ".join(name.split())
        return None

    def _greeting(self) -> Request | None:
        size = int.from_bytes(self._kept[:4])
        if len(self._kept) < 8 or len(self._kept) < size:
            return None
        self._greeted = int.from_bytes(self._kept[4:8]) not in _ASKS_FOR_ANOTHER_GREETING
        return self._taken(size), ""

    def _message(self, at: int) -> tuple[bytes, bytes, int] | None:
        end = at + 1 + int.from_bytes(self._kept[at + 1 : at + 5])
        if len(self._kept) < at + 5 or len(self._kept) < end:
            return None
        return self._kept[at : at + 1], self._kept[at + 5 : end], end

    def _taken(self, size: int) -> bytes:
        taken, self._kept = self._kept[:size], self._kept[size:]
        return taken


class RedisRequests(Requests):
    """A command, named by its first word."""

    def _next(self) -> Request | None:
        lines = self._kept.split(b"\r\n", 1)
        if len(lines) < 2:
            return None
        at, words = len(lines[0]) + 2, []
        for _ in range(int(lines[0][1:])):
            head, found, _rest = self._kept[at:].partition(b"\r\n")
            if not found:
                return None
            begin = at + len(head) + 2
            at = begin + int(head[1:]) + 2
            if len(self._kept) < at:
                return None
            words.append(self._kept[begin : at - 2])
        taken, self._kept = self._kept[:at], self._kept[at:]
        return taken, words[0].decode().upper()
