"""How large a value's JSON text would be, told without making that text: of tens of megabytes, only a start is kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import Final, TypeAlias

from attrs import define, field

Leaf: TypeAlias = "None | bool | int | float | str"

LARGEST: Final = 2**63 - 1
"""The most that is told: what shares its parts with itself may be larger on paper than any column can say."""

_FLAT: Final = frozenset({type(None), bool, int, float, str})
_AT_ONCE: Final = 4096
_CUT_TEXT: Final = 20
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@define
class JsonSize:
    """Measures values. ``leaf`` makes of what is no container what is stored of it.

    What is nested deeper than ``deepest`` counts little; a container that occurs in several places is measured once.
    """

    leaf: Callable[[object], Leaf]
    deepest: int
    _known: dict[tuple[int, int], tuple[object, int]] = field(factory=dict, init=False)

    def of(self, value: object) -> int:
        """The size of the value's compact JSON text in bytes of UTF-8, at most ``LARGEST``."""
        return min(self._of(value, 0), LARGEST)

    def _of(self, value: object, depth: int) -> int:
        if isinstance(value, str | bytes | bytearray) or not isinstance(value, Mapping | Sequence | Set):
            return _encoded(self.leaf(value))
        if depth >= self.deepest:
            return _CUT_TEXT
        place = (id(value), depth)
        if place not in self._known:
            self._known[place] = (value, _CUT_TEXT)  # what a cycle finds; kept, so that its id stays its own
            self._known[place] = (value, 2 + self._inside(value, depth + 1))
        return self._known[place][1]

    def _inside(self, value: Mapping[object, object] | Iterable[object], depth: int) -> int:
        if not isinstance(value, Mapping):
            return self._items(value, depth)
        names = (name if type(name) is str else str(self.leaf(name)) for name in value)
        return self._items(names, depth) + 1 + self._items(value.values(), depth) if value else 0

    def _items(self, items: Iterable[object], depth: int) -> int:
        """The size of these, with a sign between each two."""
        size, rest = 0, iter(items)
        while batch := list(islice(rest, _AT_ONCE)):
            flat = _flat_size(batch)
            size += sum(self._of(item, depth) + 1 for item in batch) if flat is None else flat
        return max(0, size - 1)


def _flat_size(items: list[object]) -> int | None:
    """The size of plain values with a sign behind each; ``None`` when one among them is another or not JSON's."""
    kinds = set(map(type, items))
    if not kinds <= _FLAT:
        return None
    if float in kinds and not all(math.isfinite(item) for item in items if isinstance(item, float)):
        return None
    try:
        return _encoded(items) - 1
    except ValueError:  # a number of thousands of digits
        return None


def _encoded(value: object) -> int:
    return len(_ENCODER.encode(value).encode("utf-8", "surrogatepass"))
