"""All the rules in their order, and those in force in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from attrs import field, frozen

from casenotes.core.redaction.fields import FieldNames, Trust
from casenotes.core.redaction.hints import HintSearch, lowered
from casenotes.core.redaction.marks import mark
from casenotes.core.redaction.patterns import AFTER_FIELDS, BEFORE_FIELDS, LineRule
from casenotes.core.redaction.private_keys import redact_private_keys
from casenotes.core.redaction.values import field_rules

_SHORT_NAME = 64
_MOST_NAMES = 1024


class Rule(Protocol):
    """One kind of secret: how it is found in text, and what is left of it."""

    @property
    def name(self) -> str: ...

    @property
    def hints(self) -> tuple[str, ...]:
        """Lower-case text of which a match always holds one; none: the rule is always tried."""
        ...

    def apply(self, text: str) -> str: ...


@frozen(eq=False)
class _PrivateKeys:
    name: str = "private-key"
    hints: tuple[str, ...] = ("-----begin",)

    def apply(self, text: str) -> str:
        return redact_private_keys(text)


@frozen
class Addition:
    """What a team adds to the shipped rules: patterns of its own, and names of fields."""

    patterns: tuple[LineRule, ...] = ()
    fields: tuple[str, ...] = ()


@frozen(eq=False)
class Redaction:
    """A set of rules. Redacting twice changes nothing, as long as no added pattern matches what another leaves."""

    names: FieldNames = field(factory=FieldNames)
    added: tuple[LineRule, ...] = ()
    _groups: tuple[tuple[frozenset[str], tuple[Rule, ...]], ...] = field(init=False)
    """Rules that share hints, in the order in which they are tried; what names a field needs a part of such a name."""

    _search: HintSearch = field(init=False)
    _clean_names: set[str] = field(factory=set, init=False)
    """Short names in which nothing was found; no name with a secret in it is ever kept."""

    @_groups.default
    def _make_groups(self) -> tuple[tuple[frozenset[str], tuple[Rule, ...]], ...]:
        before: tuple[Rule, ...] = (_PrivateKeys(), *BEFORE_FIELDS)
        return (
            *((frozenset(rule.hints), (rule,)) for rule in before),
            (frozenset(self.names.hints), field_rules(self.names)),
            *((frozenset(rule.hints), (rule,)) for rule in AFTER_FIELDS),
        )

    @_search.default
    def _make_search(self) -> HintSearch:
        return HintSearch(frozenset(hint for rule in self.rules for hint in rule.hints))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in the order in which they are tried, without the added patterns."""
        return tuple(rule for _, rules in self._groups for rule in rules)

    def extended(self, additions: Sequence[Addition]) -> Redaction:
        """These rules and more."""
        return Redaction(
            names=self.names.joined([name for addition in additions for name in addition.fields]),
            added=(*self.added, *(pattern for addition in additions for pattern in addition.patterns)),
        )

    def redact(self, text: str) -> str:
        """The text with each secret replaced by ``[redacted:<kind>]``."""
        held = self._search.held_by(lowered(text))
        if held:
            for hints, rules in self._groups:
                if not held.isdisjoint(hints):
                    for rule in rules:
                        if not held.isdisjoint(rule.hints):
                            text = rule.apply(text)
        if self.added:
            text = "\n".join([self._with_added(line) for line in text.split("\n")])
        return text

    def redact_name(self, name: str) -> str:
        """``redact``, of what comes again and again: fast where it came before and had no secret in it."""
        if name in self._clean_names:
            return name
        redacted = self.redact(name)
        if redacted == name and len(name) <= _SHORT_NAME:
            if len(self._clean_names) >= _MOST_NAMES:
                self._clean_names.clear()
            self._clean_names.add(name)
        return redacted

    def _with_added(self, line: str) -> str:
        for rule in self.added:
            line = rule.apply(line)
        return line


SHIPPED = Redaction()

RULES = SHIPPED.rules
"""The shipped rules, in the order in which they are tried."""

# Text becomes clean in the constructors of the model and in logging, in any task and any thread: the rules in force are
# therefore of the process, as the logging itself is. Only ``added`` changes them, and they only ever grow while
# somebody needs more of them, so that two open services in one process take nothing from each other.
_additions: list[Addition] = []
_in_force = SHIPPED


@contextmanager
def added(addition: Addition) -> Iterator[None]:
    """Have these rules in force, in the whole process, for as long as the block lasts."""
    global _in_force
    _additions.append(addition)
    _in_force = SHIPPED.extended(_additions)
    try:
        yield
    finally:
        _additions.remove(addition)
        _in_force = SHIPPED.extended(_additions) if _additions else SHIPPED


def redact(text: str) -> str:
    """The text with each secret replaced by ``[redacted:<kind>]``, by the rules in force."""
    return _in_force.redact(text)


def redact_name(name: str) -> str:
    """``redact``, of what comes again and again."""
    return _in_force.redact_name(name)


def mark_for(name: str, value: object) -> str | None:
    """What stands in place of this value in a JSON field of this name, ``None`` where it stays."""
    return _in_force.names.mark_for(name, value)


def masked_object(value: Mapping[Any, object]) -> Mapping[Any, object]:
    """An object without the secrets that another of its fields tells of, as ``FieldNames.masked`` has it."""
    return _in_force.names.masked(value)


def redaction_for_key(name: str) -> str | None:
    """What stands in place of any value of a JSON field whose name alone says that it is a secret, else ``None``."""
    said = _in_force.names.look_up(name)
    return None if said is None or said.trust is Trust.SHAPE else mark(said.kind)
