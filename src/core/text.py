"""Which text and JSON can be stored everywhere, and how much of it: settled once, for every adapter.

The rules are those of "Stored text" in the HTTP contract. ``clean`` and ``clean_json`` are idempotent:
what they return comes back from any store exactly as it was given.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from typing import TypeAlias

from attrs import frozen

from casenotes.core.redaction import redact, redaction_for_key

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
JsonObject: TypeAlias = dict[str, Json]

LIMIT_BYTES = 64 * 1024
"""The most UTF-8 bytes of one stored result or output."""

MAX_DEPTH = 64
"""JSON nested deeper than this is stored as text: some parsers give up on it."""

_MARGIN_CHARS = 16 * 1024
"""Text past the limit that is still redacted before the cut, so that no secret is cut in half and missed."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MAX_INT_BITS = 1024
_WHOLE_FROM = 1e16


def settle(text: str) -> str:
    """NUL and lone surrogates become U+FFFD; every other character stays as it is."""
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def clean(text: str) -> str:
    """Text as it may be stored, shown, logged or sent to a model: settled, and with its secrets redacted."""
    return redact(settle(text))


def clean_optional(text: str | None) -> str | None:
    """``clean``, with ``None`` left alone."""
    return None if text is None else clean(text)


def clean_json(value: object) -> Json:
    """Any Python value as storable JSON.

    NaN and infinities become ``"NaN"``, ``"Infinity"``, ``"-Infinity"``; a float of 1e16 or more, which is always
    whole, becomes an integer; what JSON cannot hold (bytes, dates,
    objects, cycles, nesting over ``MAX_DEPTH``) becomes its text; a secret's field (``{"password": ...}``)
    and a secret inside a string are redacted. Mappings stay objects, sequences and sets become arrays.
    """
    return _clean(value, 0, ())


def _clean(value: object, depth: int, above: tuple[int, ...]) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(str(value))
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _MAX_INT_BITS else hex(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, bytes | bytearray):
        return clean(bytes(value).decode("utf-8", "replace"))
    if isinstance(value, Mapping | Sequence | Set):
        if id(value) in above or depth >= MAX_DEPTH:
            return "[nested too deep]" if id(value) not in above else "[cyclic]"
        inside = (*above, id(value))
        if isinstance(value, Mapping):
            return {
                (name := settle(str(key))): _field(name, item, depth + 1, inside)
                for key, item in value.items()
            }
        items = sorted(value, key=repr) if isinstance(value, Set) else value
        return [_clean(item, depth + 1, inside) for item in items]
    return clean(_text_of(value))


def _field(name: str, value: object, depth: int, above: tuple[int, ...]) -> Json:
    kind = redaction_for_key(name)
    if kind is not None and value not in (None, "") and not isinstance(value, bool | Mapping):
        return kind
    return _clean(value, depth, above)


def _number(value: float) -> Json:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    # jsonb keeps decimals: it has no negative zero, and a float past 2**53, always whole, comes back as an integer.
    return int(value) if abs(value) >= _WHOLE_FROM else value + 0.0


def _text_of(value: object) -> str:
    isoformat = getattr(value, "isoformat", None)
    try:
        return str(isoformat()) if callable(isoformat) else str(value)
    except Exception:  # a tool's object may have a broken __str__; its type is still worth keeping
        return f"<{type(value).__name__}>"


def clean_object(value: Mapping[str, object] | None) -> JsonObject:
    """``clean_json`` of a mapping; ``None`` is the empty object."""
    cleaned = clean_json(value or {})
    return cleaned if isinstance(cleaned, dict) else {}


def json_text(value: Json) -> str:
    """The compact, strict JSON text of a clean value, as its size is measured and as it is cut."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


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
    """
    if isinstance(value, str):
        return _bounded_text(value, limit)
    cleaned = clean_json(value)
    if cleaned is None:
        return Bounded(None, False, 0)
    if isinstance(cleaned, str):
        return _bounded_text(cleaned, limit)
    text = json_text(cleaned)
    size = len(text.encode())
    if size <= limit:
        return Bounded(cleaned, False, size)
    return Bounded(cut(text, limit), True, size)


def _bounded_text(text: str, limit: int) -> Bounded:
    settled = settle(text)
    size = len(settled.encode())
    cleaned = redact(settled[: limit + _MARGIN_CHARS])
    kept = cut(cleaned, limit)
    return Bounded(kept, len(kept) < len(cleaned) or len(settled) > limit + _MARGIN_CHARS, size)


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
