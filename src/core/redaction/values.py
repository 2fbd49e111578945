"""Finds the values of secret fields in text: ``name=value``, ``"name": "value"``, ``--name value`` and their like.

Also inside JSON that is itself a string in JSON: a value then ends at the quote that is escaped as its first one was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from attrs import frozen

from casenotes.core.redaction.fields import CREDENTIAL, HARMLESS, FieldNames, Name, Trust, is_directory
from casenotes.core.redaction.marks import MARK, mark

_SIGN = re.compile(r"""(?P<sign>[:=](?!//)[=>]?)(?P<gap>[ \t]*+)(?P<quote>\\*+["'])?""", re.ASCII)
_NAME_BACKWARDS = re.compile(r"[\w.-]++", re.ASCII)
_LONGEST_NAME = 100
_BARE = re.compile(  # up to a blank, a quote, or what begins the next field
    r"""(?:[^\s&;"'\\,<]|\\(?![nr"'])|<(?!/)|,(?![ \t]*+\\*+["']?[\w.-]{1,100}+\\*+["']?[ \t]*+[:=]))++""",
    re.ASCII,
)
_NUMBER = re.compile(r"-?\d[\d.eE+-]*+(?=[ \t]*+(?:[,}\]\n\r\\]|\Z))", re.ASCII)
_ENDS = {quote: re.compile(rf"(?<!\\)(\\*+){quote}|\n") for quote in ('"', "'")}
_TOKEN = re.compile(r"""[\w.+/%~-]++={0,2}+(?=[\s&;"'\\,)\]}<]|\Z)""", re.ASCII)
_ITEM = re.compile(r"""[ \t]*+,?[ \t]*+(?P<quote>\\*+["'])""")
_PLACE = re.compile(
    r"<set to the key |\d{1,9} bytes\b"
)  # kubectl describe tells of a secret without telling it
_SPACED = re.compile(r"\b(?:api|access|secret|account|private)[ ]\Z", re.IGNORECASE | re.ASCII)

_PAIR = re.compile(
    r"""(?<![A-Za-z])(?:name|key)\\*+["']?[ \t]*+[:=][ \t]*+(?:\\*+["'])?(?P<name>[\w.-]++)(?:\\*+["'])?"""
    r"""[ \t]*+[,;]?+[ \t\r]*+\n?+[ \t]*+(?:\\*+["'])?(?<![A-Za-z])value(?P<closed>\\*+["'])?[ \t]*+"""
    r"""(?P<sign>[:=])(?P<gap>[ \t]*+)(?P<quote>\\*+["'])?""",
    re.IGNORECASE | re.ASCII,
)
PAIR_BEGUN = re.compile(
    r"""(?<![A-Za-z])(?:name|key)\\*+["']?[ \t]*+[:=][ \t]*+(?:\\*+["'])?[\w.-]++(?:\\*+["'])?[ \t]*+[,;]?+"""
    r"[ \t\r]*+\n\Z",
    re.IGNORECASE | re.ASCII,
)
"""A line after which the value of a pair may stand on the next one."""

_OPTION = re.compile(
    r"""(?<=-)(?<!\w-)(?P<name>[A-Za-z][\w.-]{1,100}+)(?P<sign>["']?,?[ \t]++)(?P<quote>["'])?(?!-)""",
    re.ASCII,
)
_ELEMENT = re.compile(
    r"<(?P<name>[\w.:-]{1,100}+)(?:[ \t][^<>\n]{0,200}+)?>(?=[^<\n]{1,1000}+</)",
    re.ASCII,
)


@frozen
class Found:
    """A field in text: its name, and what stands between that and its value, which begins at ``end``."""

    name: str
    begin: int
    closed: str | None
    """The quote behind the name."""
    sign: str
    gap: str
    quote: str | None
    """The quote before the value."""
    end: int


Finder: TypeAlias = Callable[[str, int, FieldNames], Found | None]
"""Finds the first field of a secret's name from a position on; the name may be any where that cannot be told fast."""

Span: TypeAlias = tuple[int, int, str | None]
"""Where a value stands, and what is put in its place: ``None`` where it stays."""


@frozen(eq=False)
class FieldRule:
    """Secrets in text that are known by the name of their field."""

    name: str
    hints: tuple[str, ...]
    names: FieldNames
    find: Finder
    spans: Callable[[str, Found, Name], Iterator[Span]]

    def apply(self, text: str) -> str:
        kept: list[str] = []
        done = position = 0
        while (found := self.find(text, position, self.names)) is not None:
            position = found.end
            said = self._said(text, found) if found.begin >= done else None
            if said is None:
                continue
            for begin, end, put in self.spans(text, found, said):
                position = max(position, end)
                if put is not None and not _is_mark(text, begin, end):
                    kept += [text[done:begin], put]
                    done = end
        return "".join([*kept, text[done:]]) if kept else text

    def _said(self, text: str, found: Found) -> Name | None:
        name, begin = found.name, found.begin
        said = self.names.look_up(name)
        if said is None and text[begin - 1 : begin] == "\\" and name[0] in "nrt":
            return self.names.look_up(name[1:])  # a name at the begin of a line, in JSON
        if said is None and name.lower() == "key":
            before = _SPACED.search(text, max(0, begin - 10), begin)
            return None if before is None else self.names.look_up(before.group().strip() + "_key")
        return said


def _find_field(text: str, position: int, names: FieldNames) -> Found | None:
    """Signs are rare and quickly found; what stands before one is looked at from its end."""
    if position == 0 and not names.may_stand_in(text):  # told once: it takes a look at the whole text
        return None
    endings = names.endings
    for match in _SIGN.finditer(text, position):
        end = match.start()
        while end and text[end - 1] in " \t":
            end -= 1
        closed = None
        if end and text[end - 1] in "\"'":
            begin = end - 1
            while begin and text[begin - 1] == "\\":
                begin -= 1
            closed, end = text[begin:end], begin
        if text[max(0, end - 2) : end].lower() in endings:
            backwards = _NAME_BACKWARDS.match(text[max(0, end - _LONGEST_NAME) : end][::-1])
            name = "" if backwards is None else backwards.group()[::-1]
            if name and names.may_say(name):
                return Found(
                    name, end - len(name), closed, match["sign"], match["gap"], match["quote"], match.end()
                )
    return None


def _finder(pattern: re.Pattern[str]) -> Finder:
    def find(text: str, position: int, names: FieldNames) -> Found | None:
        match = pattern.search(text, position)
        if match is None:
            return None
        groups = match.groupdict()
        return Found(
            match["name"],
            match.start("name"),
            groups.get("closed"),
            groups.get("sign") or "=",
            groups.get("gap") or "",
            groups.get("quote"),
            match.end(),
        )

    return find


def _is_mark(text: str, begin: int, end: int) -> bool:
    found = MARK.match(text, begin)
    return found is not None and found.end() >= end


def _field_value(text: str, found: Found, said: Name) -> Iterator[Span]:
    begin, quote, replaced = found.end, found.quote, mark(said.kind)
    if quote is None and found.closed is None:
        if said.kind in ("cookie", "authorization"):
            return  # a header: its own rule knows where it ends
        if _PLACE.match(text, begin):
            return
    if quote is not None:
        ends_prose = found.closed is None and not found.gap and text[begin : begin + 1] in " \t\n,)}]"
        if ends_prose:
            return
        end = _closing(text, begin, quote)
    elif found.closed is not None and text[begin : begin + 1] in ("{", "["):
        if text[begin] == "[" and said.trust is not Trust.SHAPE:
            yield from _items(text, begin + 1, replaced)
        return
    elif found.closed is not None and (number := _NUMBER.match(text, begin)) is not None:
        if said.trust is Trust.SURE:
            yield begin, number.end(), f"{found.closed}{replaced}{found.closed}"  # JSON stays JSON
        return
    elif said.trust is Trust.SHAPE or (
        said.trust is Trust.PROSE and found.closed is None and found.sign == ":"
    ):
        token = _TOKEN.match(text, begin)
        if token is not None and CREDENTIAL.fullmatch(token.group()):
            yield begin, token.end(), replaced
        return
    else:
        end = _bare_end(text, begin)
    yield begin, end, replaced if _holds_secret(text[begin:end], found, said) else None


def _holds_secret(value: str, found: Found, said: Name) -> bool:
    if not value.strip() or HARMLESS.fullmatch(value) or is_directory(found.name, value):
        return False
    if said.trust is Trust.SHAPE:
        return CREDENTIAL.fullmatch(value) is not None
    counts = said.trust is Trust.PROSE and found.quote is None and value.isdigit() and len(value) < 10
    return not counts


def _bare_end(text: str, begin: int) -> int:
    found = _BARE.match(text, begin)
    if found is None:
        return begin
    done = MARK.match(text, begin) or HARMLESS.match(text, begin)
    least = begin if done is None else done.end()
    end = found.end()
    while end > least and text[end - 1] in ",)]}.":  # what closes around the field is not of its value
        end -= 1
    return end


def _items(text: str, begin: int, replaced: str) -> Iterator[Span]:
    while (item := _ITEM.match(text, begin)) is not None:
        end = _closing(text, item.end(), item["quote"])
        yield item.end(), end, replaced if end > item.end() else None
        begin = end + len(item["quote"])


def _closing(text: str, begin: int, quote: str) -> int:
    """Where the string that began with this quote ends: at its quote, at an outer one, or with its line.

    In JSON ``n`` levels deep a quote has ``2**n - 1`` backslashes before it, and an escaped backslash ``2**(n+1)``.
    """
    depth = len(quote) - 1
    for found in _ENDS[quote[-1]].finditer(text, begin):
        if found[1] is None:
            return found.start()
        run = len(found[1])
        if run < depth:
            return found.start()
        if run % (2 * (depth + 1)) == depth:
            return found.end() - 1 - depth
    return len(text)


def _element_value(text: str, found: Found, said: Name) -> Iterator[Span]:
    end = text.find("<", found.end)
    if _holds_secret(text[found.end : end], found, said):
        yield found.end, end, mark(said.kind)


def _option_value(text: str, found: Found, said: Name) -> Iterator[Span]:
    end = _closing(text, found.end, found.quote) if found.quote else _bare_end(text, found.end)
    if said.trust is not Trust.SHAPE and _holds_secret(text[found.end : end], found, said):
        yield found.end, end, mark(said.kind)


def field_rules(names: FieldNames) -> tuple[FieldRule, ...]:
    """The rules that find these names in text."""
    return (
        FieldRule("field", names.hints, names, _find_field, _field_value),
        FieldRule("name-and-value", ("value",), names, _finder(_PAIR), _field_value),
        FieldRule("element", ("</",), names, _finder(_ELEMENT), _element_value),
        FieldRule("option", (" --", "\n--", "'--", '"--'), names, _finder(_OPTION), _option_value),
    )
