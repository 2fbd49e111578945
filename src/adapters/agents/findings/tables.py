"""Tables as ``kubectl`` prints them: a header, then rows of the same columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

Row: TypeAlias = Mapping[str, str]
"""A row by the names of its columns, lower case."""

_GAP = re.compile(r"\s{2,}|\t+")
_TREE = re.compile(r"^[\s│├└─]+")
_RULE = re.compile(r"^[\s-]+$")
_KNOWN = (
    frozenset({"reason", "message"}),
    frozenset({"name", "ready"}),
    frozenset({"name", "status"}),
    frozenset({"type", "status"}),
)


def rows(text: str) -> Iterator[Row]:
    """The rows of every table in the text whose header is of a kind that ``kubectl`` prints."""
    header: Sequence[str] = ()
    starts: list[int] = []
    indent = 0
    for line in text.splitlines():
        if not line.strip():
            header = ()
            continue
        cells = [cell.casefold() for cell in _GAP.split(line.strip())]
        if any(known <= frozenset(cells) for known in _KNOWN):
            header, starts = cells, _starts(line)
            indent = len(line) - len(line.lstrip())
        elif header and _RULE.match(line) is None:
            if len(line) - len(line.lstrip()) < indent:
                header = ()
                continue
            yield dict(zip(header, _cells(line, len(header), starts), strict=True))


def _starts(line: str) -> list[int]:
    begin = len(line) - len(line.lstrip())
    return [begin, *(gap.end() for gap in _GAP.finditer(line, begin) if gap.end() < len(line))]


def _cells(line: str, count: int, starts: Sequence[int]) -> list[str]:
    cells = _GAP.split(_TREE.sub("", line).strip(), maxsplit=count - 1)
    if len(cells) == count:
        return cells
    ends = [*starts[1:], len(line)]
    return [_TREE.sub("", line[start:end]).strip() for start, end in zip(starts, ends, strict=True)]
