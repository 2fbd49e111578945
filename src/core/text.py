"""Which text and JSON can be stored everywhere, and how much of it: settled once, for every adapter.

The rules are those of "Stored text" in the HTTP contract. ``clean`` and ``clean_json`` are idempotent:
what they return comes back from any store exactly as it was given.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TypeAlias

from attrs import define, field, frozen

from casenotes.core.redaction import mark_for, masked_object, redact, redact_name, redaction_for_key
from casenotes.core.sizes import JsonSize

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
JsonObject: TypeAlias = dict[str, Json]

LIMIT_BYTES = 64 * 1024
"""The most UTF-8 bytes of one stored result or output."""

NAME_BYTES = 1024
"""The most UTF-8 bytes of the name of an agent, a tool, a model or a kind of step."""

MOST_COUNTED = 2**53 - 1
"""The largest whole number that every reader of JSON holds exactly."""

MAX_DEPTH = 64
"""JSON nested deeper than this is stored as text: some parsers give up on it."""

MOST_CHARS = 1024 * 1024
"""About the most characters of one JSON value that are kept at all, where no smaller limit is set."""

_LEAST_COST = 4
"""How many characters even a digit or an empty list counts for: cleaning it takes as long as a short text."""

_MARGIN_CHARS = 16 * 1024
"""Text past the limit that is still redacted before the cut, so that no secret is cut in half and missed."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MAX_INT_BITS = 1024
_WHOLE_FROM = 1e16


def settle(text: str) -> str:
    """NUL and lone surrogates become U+FFFD; every other character stays as it is."""
    if type(text) is str and "\x00" not in text and (text.isascii() or _encodes(text)):
        return text  # nearly always, and told faster than the pattern tells it
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def _encodes(text: str) -> bool:
    """Whether the text can be encoded: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def clean(text: str) -> str:
    """Text as it may be stored, shown, logged or sent to a model: settled, and with its secrets redacted."""
    return redact(settle(text))


def clean_name(text: str) -> str:
    """``clean``, cut to the little that a name, of an agent, a tool or a model, may take."""
    return cut(redact_name(settle(text[:NAME_BYTES])), NAME_BYTES)


def told_count(value: object) -> int | None:
    """A count or a duration that somebody told, ``None`` unless it is a whole number that every store holds."""
    return value if type(value) is int and 0 <= value <= MOST_COUNTED else None


def clean_optional(text: str | None) -> str | None:
    """``clean``, with ``None`` left alone."""
    return None if text is None else clean(text)


def clean_json(value: object) -> Json:
    """Any Python value as storable JSON.

    NaN and infinities become ``"NaN"``, ``"Infinity"``, ``"-Infinity"``; a float of 1e16 or more, which is always
    whole, becomes an integer; what JSON cannot hold (bytes, dates,
    objects, cycles, nesting over ``MAX_DEPTH``) becomes its text; a secret's field (``{"password": ...}``)
    and a secret inside a string are redacted. Mappings stay objects, sequences and sets become arrays. Of what is
    larger than ``MOST_CHARS`` the rest is left out. No value makes it fail, whatever its own methods do.
    """
    return _Cleaning(MOST_CHARS).of(value)


@define
class _Cleaning:
    """Cleans one value, up to so many characters of JSON; ``left_out`` tells whether that was not the whole."""

    _left: int
    left_out: bool = field(default=False, init=False)

    def of(self, value: object, depth: int = 0, above: tuple[int, ...] = ()) -> Json:
        try:
            return self._of(value, depth, above)
        except Exception:  # a tool's object may have broken methods; its type is still worth keeping
            return f"<{type(value).__name__}>"

    def _of(self, value: object, depth: int, above: tuple[int, ...]) -> Json:
        if _is_leaf(value):
            return self._leaf(value)
        if id(value) in above or depth >= MAX_DEPTH:
            return "[nested too deep]" if id(value) not in above else "[cyclic]"
        inside = (*above, id(value))
        self._left -= _LEAST_COST
        if isinstance(value, Mapping):
            return self._object(value, depth, inside)
        assert isinstance(value, Sequence | Set)
        return self._array(value, depth, inside)

    def _object(self, value: Mapping[object, object], depth: int, inside: tuple[int, ...]) -> JsonObject:
        cleaned: JsonObject = {}
        for key, item in masked_object(value).items():
            if self._left <= 0:
                self.left_out = True
                break
            name = settle(key if type(key) is str else _name(key))
            self._left -= len(name) + 3
            cleaned[name] = self._field(name, item, depth + 1, inside)
        return cleaned

    def _field(self, name: str, item: object, depth: int, above: tuple[int, ...]) -> Json:
        """The value of a field; where its name says that it is a secret, so is each item of an array in it."""
        if _is_leaf(item):
            mark = mark_for(name, item)
            return self._leaf(item) if mark is None else self._counted(mark)
        if isinstance(item, list | tuple | Set) and redaction_for_key(name) is not None:
            return self.of([mark_for(name, inner) or inner for inner in item], depth, above)
        return self.of(item, depth, above)

    def _array(
        self, value: Sequence[object] | Set[object], depth: int, inside: tuple[int, ...]
    ) -> list[Json]:
        cleaned: list[Json] = []
        for item in sorted(value, key=_order) if isinstance(value, Set) else value:
            if self._left <= 0:
                self.left_out = True
                break
            self._left -= 1
            cleaned.append(self.of(item, depth + 1, inside))
        return cleaned

    def _leaf(self, value: object) -> Json:
        try:
            return self._counted(_leaf(value))
        except Exception:  # as in ``of``
            return f"<{type(value).__name__}>"

    def _counted(self, leaf: Json) -> Json:
        if isinstance(leaf, str):
            end = max(0, self._left) + _MARGIN_CHARS
            self.left_out = self.left_out or len(leaf) > end
            leaf = _redacted_start(settle(leaf), end)
            self._left -= len(leaf)
        self._left -= _LEAST_COST
        return leaf


_LEAVES = frozenset({str, int, float, bool, type(None), bytes})


def _is_leaf(value: object) -> bool:
    kind = type(value)
    if kind in _LEAVES or kind is dict or kind is list:  # nearly always, and told fast
        return kind in _LEAVES
    return isinstance(value, str | bytes | bytearray) or not isinstance(value, Mapping | Sequence | Set)


def _leaf(value: object) -> None | bool | int | float | str:
    """What is stored of a value that holds no others, before its secrets are looked for."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _MAX_INT_BITS else hex(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    return _text_of(value)


def _name(key: object) -> str:
    return hex(key) if isinstance(key, int) and key.bit_length() > _MAX_INT_BITS else _text_of(key, str)


def _order(item: object) -> str:
    return _text_of(item, repr)


def _redacted_start(settled: str, end: int) -> str:
    """The text up to there without its secrets; where that cuts it, short of a secret that the end would halve."""
    if len(settled) <= end:
        return redact(settled)
    return redact(settled[:end])[:-_MARGIN_CHARS]


def _number(value: float) -> int | float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    # jsonb keeps decimals: it has no negative zero, and a float past 2**53, always whole, comes back as an integer.
    return int(value) if abs(value) >= _WHOLE_FROM else value + 0.0


def _text_of(value: object, form: Callable[[object], str] = str) -> str:
    isoformat = getattr(value, "isoformat", None) if form is str else None
    try:
        return str(isoformat()) if callable(isoformat) else form(value)
    except Exception:  # a tool's object may have a broken __str__; its type is still worth keeping
        return f"<{type(value).__name__}>"


def clean_object(value: Mapping[str, object] | None) -> JsonObject:
    """``clean_json`` of a mapping; ``None`` is the empty object."""
    cleaned = clean_json(value or {})
    return cleaned if isinstance(cleaned, dict) else {}


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_text(value: Json) -> str:
    """The compact, strict JSON text of a clean value, as its size is measured and as it is cut."""
    return _encoder.encode(value)


@frozen
class Bounded:
    """A value within the limit, whether it was cut to fit, and its true size in bytes of UTF-8."""

    value: Json
    truncated: bool
    size: int


def bounded(value: object, limit: int = LIMIT_BYTES) -> Bounded:
    """Clean a value and cut it at a character to at most ``limit`` bytes of UTF-8.

    A string stays a string. Within the limit an object stays an object; over it, it becomes its JSON text, cut.
    ``size`` is the size of what was given (for an object: of its JSON text), before the cut and before redaction.
    The work done on a value of any size is that on its start, and measuring the rest.
    """
    if _is_leaf(value):
        leaf = _safe_leaf(value)
        if isinstance(leaf, str):
            return _bounded_text(leaf, limit)
        return Bounded(leaf, False, 0 if leaf is None else len(json_text(leaf)))
    cleaning = _Cleaning(_LEAST_COST * limit)  # what it takes when every character counts for the most
    cleaned = cleaning.of(value)
    if isinstance(cleaned, str):
        return _bounded_text(cleaned, limit)
    text = json_text(cleaned)
    size = _utf8_size(text)
    given = _size_of(value, size) if cleaning.left_out or "[redacted:" in text else size
    if not cleaning.left_out and size <= limit:
        return Bounded(cleaned, False, given)
    return Bounded(cut(text, limit), True, given)


def _safe_leaf(value: object) -> None | bool | int | float | str:
    try:
        return _leaf(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _size_of(value: object, at_least: int) -> int:
    try:
        return JsonSize(_safe_leaf, MAX_DEPTH).of(value)
    except Exception:  # a container with broken methods
        return at_least


def _bounded_text(text: str, limit: int) -> Bounded:
    settled = settle(text)
    end = limit + 2 * _MARGIN_CHARS
    cleaned = _redacted_start(settled, end)
    kept = cut(cleaned, limit)
    return Bounded(kept, len(kept) < len(cleaned) or len(settled) > end, _utf8_size(settled))


def _utf8_size(settled: str) -> int:
    return len(settled) if settled.isascii() else len(settled.encode())


def bounded_text(text: str | None, limit: int = LIMIT_BYTES) -> str | None:
    """Clean text of at most ``limit`` bytes of UTF-8; ``None`` stays ``None``."""
    if text is None:
        return None
    value = _bounded_text(text, limit).value
    assert isinstance(value, str)
    return value


def cut(text: str, limit: int) -> str:
    """The longest start of the text that takes at most ``limit`` bytes of UTF-8, whole characters only."""
    if len(text) * 4 <= limit:
        return text
    encoded = text.encode()
    return text if len(encoded) <= limit else encoded[:limit].decode("utf-8", "ignore")


def fold(text: str, limit: int) -> str:
    """One line of at most ``limit`` characters: runs of white space become one space, a cut ends with an ellipsis.

    A combining sequence is never left without its base at the end: marks that would be cut from their base go
    together with it.
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    end = limit - 1
    while end > 0 and _joins_previous(line[end]):
        end -= 1
    return line[:end].rstrip() + "…"


def _joins_previous(character: str) -> bool:
    return unicodedata.combining(character) != 0 or character in "\u200d\ufe0e\ufe0f"
