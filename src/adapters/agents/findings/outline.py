"""Indented ``key: value`` text (``kubectl describe``, YAML) and JSON, as one flat list of entries with their paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from attrs import frozen

from casenotes.core.text import Json

Path: TypeAlias = tuple[str, ...]

MAX_ENTRIES = 20_000


@frozen
class Entry:
    """A value and where it stands. List items have the path part ``[n]``."""

    path: Path
    value: str

    @property
    def key(self) -> str:
        """The last part of the path."""
        return self.path[-1]


_KEY = re.compile(
    r"""^(?P<key>"[^"]{1,120}"|'[^']{1,120}'|[^\s:"'{}\[\]][^:"'{}\[\]]{0,119}?):(?:\s+(?P<value>.*))?$"""
)


def outline(text: str) -> list[Entry]:
    """The entries of indented text, in order. Lines that are no ``key: value`` are passed over."""
    found: list[Entry] = []
    above: list[tuple[int, str]] = []
    items = 0
    for line in text.splitlines():
        body = line.strip()
        indent = len(line) - len(line.lstrip())
        if body.startswith("- "):
            _close(above, indent, item=True)
            above.append((indent, f"[{items}]"))
            items += 1
            indent, body = indent + 2, body[2:].lstrip()
        matched = _KEY.match(body)
        if matched is None:
            continue
        _close(above, indent, item=False)
        key = matched["key"].strip("\"'")
        path = (*(name for _, name in above), key)
        found.append(Entry(path, (matched["value"] or "").strip().strip("\"'")))
        above.append((indent, key))
        if len(found) >= MAX_ENTRIES:
            break
    return found


def _close(above: list[tuple[int, str]], indent: int, *, item: bool) -> None:
    # in YAML the dash of a list may stand as far left as the key it belongs to
    while above and (
        above[-1][0] > indent or (above[-1][0] == indent and (not item or above[-1][1][0] == "["))
    ):
        above.pop()


def flatten(value: Json) -> list[Entry]:
    """The entries of a JSON value, in order."""
    found: list[Entry] = []
    for entry in _walk(value, ()):
        found.append(entry)
        if len(found) >= MAX_ENTRIES:
            break
    return found


def _walk(value: Json, path: Path) -> Iterator[Entry]:
    match value:
        case dict():
            for key, item in value.items():
                if isinstance(item, dict | list):
                    yield Entry((*path, key), "")
                yield from _walk(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from _walk(item, (*path, f"[{index}]"))
        case None:
            return
        case _:
            if path:
                yield Entry(path, str(value))
