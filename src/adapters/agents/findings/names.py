"""Names of things: whose pod it is, and whether two names are of one thing."""

from __future__ import annotations

import re
from functools import lru_cache

_POD_TAIL = re.compile(
    r"(?:-[a-f0-9]{8,10}(?=-[a-z0-9]{5}$))?-(?=[a-z0-9]{5}$)(?=[a-z]*\d|[bcdfghjklmnpqrstvwxz]{5}$)[a-z0-9]{5}$"
)
_SET_TAIL = re.compile(r"-[a-f0-9]{8,10}$|-\d{1,3}$")
_KIND_TAIL = re.compile(r"-?(?:service|svc|server|app|api|deployment)$")

MACHINE_JOBS = frozenset(
    {
        "node",
        "node-exporter",
        "node_exporter",
        "windows-exporter",
        "windows_exporter",
        "cadvisor",
        "kubelet",
        "blackbox",
    }
)
"""Scrape jobs that go over machines: such a job's name is no thing's name, its ``instance`` is."""


@lru_cache(maxsize=4096)
def owner_of(name: str) -> str:
    """The workload that a pod's name comes from; a name of nothing else is its own owner."""
    short = _POD_TAIL.sub("", name)
    return short if short != name else _SET_TAIL.sub("", name) or name


@lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """The owner's name in lower case without a tail that only says what kind of thing it is."""
    owner = owner_of(name.casefold())
    return _KIND_TAIL.sub("", owner) or owner


def same_thing(one: str, other: str) -> bool:
    """Whether two names are of one thing: equal, of one owner, or one a part of the other (``pay``, ``pay-db``)."""
    if not one or not other:
        return False
    left, right = plain(one), plain(other)
    return left == right or left.startswith(right + "-") or right.startswith(left + "-")


def mentions(text: str, name: str) -> bool:
    """Whether the text names this thing, as a word of its own or by its plain name."""
    low = text.casefold()
    forms = {name.casefold(), owner_of(name.casefold()), plain(name)}
    return any(len(form) >= 3 and _has_word(low, form) for form in forms)


def _has_word(text: str, word: str) -> bool:
    at = text.find(word)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(word) : at + len(word) + 1]
        if not (_is_part(before) or _is_part(after)):
            return True
        at = text.find(word, at + 1)
    return False


def _is_part(character: str) -> bool:
    return character.isalnum() or character == "_"
