"""Redaction rules of a team's own, read from a TOML file; docs/redaction.md has its form."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from casenotes.core.errors import InvalidSettings
from casenotes.core.redaction import Addition, LineRule

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)
_FIELD = re.compile(r"(?=.*[A-Za-z0-9]{2})[A-Za-z0-9_.-]{2,100}", re.ASCII)


def read_addition(path: Path) -> Addition:
    """The rules in this file. Raises ``InvalidSettings`` that names the file, the entry and what is wrong with it."""
    try:
        given = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidSettings(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidSettings(f"{path}: must be UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at (line \d+, column \d+|end of document)\)\Z", str(error))
        raise InvalidSettings(f"{path}: is not TOML" + (f" at {place[1]}" if place else "")) from None
    for key in given:
        if key not in ("pattern", "fields"):
            raise InvalidSettings(f"{path}: {key!r} is not known: fields and [[pattern]] are")
    fields, patterns = given.get("fields", []), given.get("pattern", [])
    if not isinstance(fields, list):
        raise InvalidSettings(f"{path}: fields: must be an array of names")
    if not isinstance(patterns, list):
        raise InvalidSettings(f"{path}: pattern: must be written as [[pattern]]")
    return Addition(
        patterns=tuple(_pattern(f"{path}: pattern {n}", entry) for n, entry in enumerate(patterns, start=1)),
        fields=tuple(_field(f"{path}: fields[{n}]", name) for n, name in enumerate(fields)),
    )


def _field(where: str, name: object) -> str:
    if not isinstance(name, str) or _FIELD.fullmatch(name) is None:
        raise InvalidSettings(
            f"{where}: must be a name of letters, digits, '_', '-' and '.', 2 to 100 of them"
        )
    return name


def _pattern(where: str, entry: object) -> LineRule:
    if not isinstance(entry, dict):
        raise InvalidSettings(f"{where}: must be a table with name and pattern")
    for key in entry:
        if key not in ("name", "pattern"):
            raise InvalidSettings(f"{where}: {key!r} is not known: name and pattern are")
    name, pattern = entry.get("name"), entry.get("pattern")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise InvalidSettings(
            f"{where}: name: must be lower-case letters, digits and '-', at most 40 of them"
        )
    if not isinstance(pattern, str) or not pattern:
        raise InvalidSettings(f"{where} ({name}): pattern: must be a regular expression")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        at = "" if error.pos is None else f" at character {error.pos + 1}"
        raise InvalidSettings(f"{where} ({name}): pattern: is not a regular expression{at}") from None
    if compiled.search("") is not None:
        raise InvalidSettings(f"{where} ({name}): pattern: must not match the empty text")
    return LineRule(name, name, (), (compiled,))
