"""Text for a terminal: nothing stored can steer it, and nothing is wider than 80 columns."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime

from casenotes.core.text import Json

WIDTH = 80

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters but tab and line feed, and what is invisible or turns the direction of text."""

_ITEM = re.compile(r"(?:[-*+]|\d{1,3}[.)]) ")


def visible(text: str) -> str:
    """The text with each character that could steer a terminal written as its escape; CRLF is a line end."""
    return _STEERING.sub(_escape, text.replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode("ascii")


def as_json(shape: Json | list[dict[str, Json]]) -> str:
    """The JSON of a wire shape, indented; what could steer a terminal is escaped in JSON's own way."""
    text = json.dumps(shape, ensure_ascii=False, indent=2, allow_nan=False)
    return _STEERING.sub(lambda match: json.dumps(match.group())[1:-1], text)


def cells(text: str) -> int:
    """How many columns a terminal gives the text: two to a wide character, none to a mark."""
    return sum(_cells_of(character) for character in text)


def _cells_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrapped(text: str, first: str = "", rest: str | None = None) -> str:
    """The text, visible, in lines of at most ``WIDTH`` columns: the first after ``first``, the others after ``rest``.

    Lines of the text stay lines and keep their own indentation; what belongs to a list's item stays below it.
    ``rest`` is as many blanks as ``first`` is wide unless it is given.
    """
    margin = " " * cells(first) if rest is None else rest
    lines = [
        piece
        for line in visible(text).expandtabs(4).strip("\n").split("\n")
        for piece in _pieces(line, WIDTH - max(cells(first), cells(margin)))
    ]
    return "\n".join(
        f"{first if number == 0 else margin}{line}".rstrip() for number, line in enumerate(lines)
    )


def one_line(text: str, width: int) -> str:
    """The text, visible, on one line of at most ``width`` columns; a cut ends with an ellipsis."""
    line = visible(" ".join(text.split()))
    return line if cells(line) <= width else _start(line, width - 1).rstrip() + "…"


def _pieces(line: str, width: int) -> Iterator[str]:
    indent = line[: min(len(line) - len(line.lstrip(" ")), width // 2)]
    item = _ITEM.match(line[len(indent) :])
    current = indent
    hanging = indent + " " * (item.end() if item else 0)
    for word in line.split():
        gap = "" if current == indent else " "
        if cells(current) + cells(gap) + cells(word) > width and current != indent:
            yield current
            current = indent = hanging
            gap = ""
        current += gap + word
        while cells(current) > width:
            kept = _start(current, width)
            yield kept
            current = hanging + current[len(kept) :]
    yield current


def _start(text: str, width: int) -> str:
    used = 0
    for position, character in enumerate(text):
        used += _cells_of(character)
        if used > width:
            return text[:position]
    return text


def moment(at: datetime) -> str:
    """A time to the second, such as ``2026-12-01 00:00:00 UTC``."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(milliseconds: int) -> str:
    """How long something took: ``85 ms``, ``1.2 s``, ``3 min 5 s``."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes} min {seconds} s"


def size(count: int) -> str:
    """How many bytes: ``312 B``, ``1.4 KiB``, ``20.0 MiB``."""
    if count < 1024:
        return f"{count} B"
    if count < 1024**2:
        return f"{count / 1024:.1f} KiB"
    return f"{count / 1024**2:.1f} MiB"


def counted(count: int, noun: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
