"""The quick way between rows and models: for a row, or a model, whose values have the types that one had before.

What a row of any types becomes, and what it must not become, the converter of ``rows`` decides, slowly. The types of
a record's values are its signature. Once the converter has accepted a signature, a plan of the few conversions that
it needs is made, and tried against the converter's own result: only if the two agree is the plan used from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from operator import attrgetter, itemgetter
from typing import Any, Final, Generic, TypeAlias, TypeVar

from attrs import define, field, fields

Model = TypeVar("Model")
Row: TypeAlias = dict[str, Any]
Signature: TypeAlias = tuple[type, ...]
Plan: TypeAlias = tuple[tuple[int, Callable[[Any], Any]], ...]

_MOST: Final = 1000
"""Signatures that are remembered of one model. There are some dozens; odd rows must not fill the memory."""


@define(eq=False)
class Signatures(Generic[Model]):
    """Rows and models of one kind. ``reads`` and ``writes`` are the converter's ways.

    ``words`` are the fields that hold a word of an enumeration. ``settle`` puts right, in the values of a model, what
    one column says of another; ``complete`` does so in a row that is to be written.
    """

    model: type[Model]
    reads: Callable[[Mapping[str, Any]], Model]
    writes: Callable[[Model], Row]
    words: Mapping[str, type[StrEnum]]
    settle: Callable[[Mapping[str, Any], list[Any], Mapping[str, int]], None] | None = None
    complete: Callable[[Row], Row] | None = None
    _names: tuple[str, ...] = field(init=False)
    _places: Mapping[str, int] = field(init=False)
    _of_row: Callable[[Any], tuple[Any, ...]] = field(init=False)
    _of_model: Callable[[Any], tuple[Any, ...]] = field(init=False)
    _read_plans: dict[Signature, Plan | None] = field(factory=dict, init=False)
    _fresh_plans: dict[Signature, Plan | None] = field(factory=dict, init=False)
    _write_plans: dict[Signature, Plan | None] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._names = tuple(one.name for one in fields(self.model))  # type: ignore[arg-type]
        self._places = {name: place for place, name in enumerate(self._names)}
        self._of_row = itemgetter(*self._names)
        self._of_model = attrgetter(*self._names)

    def read(self, row: Mapping[str, Any], *, is_fresh: bool = False) -> Model:
        """The model of a row; it shares nothing with it, unless the row is fresh and nobody else's. Raises what
        ``reads`` raises."""
        try:
            values = self._of_row(row)
        except KeyError:  # a column that has a default
            return self.reads(row)
        signature = tuple(map(type, values))
        plan = (self._fresh_plans if is_fresh else self._read_plans).get(signature, _UNKNOWN)
        if plan is _UNKNOWN:
            return self._learn_to_read(row, values, signature)
        if plan is None:
            return self.reads(row)
        try:
            return self._made(row, values, plan)
        except (KeyError, ValueError):  # a word that is none, JSON that is none
            return self.reads(row)

    def write(self, model: Model) -> Row:
        """The row of a model, its ``id`` too. Raises what ``writes`` raises."""
        values = self._of_model(model)
        signature = tuple(map(type, values))
        plan = self._write_plans.get(signature, _UNKNOWN)
        if plan is _UNKNOWN:
            return self._learn_to_write(model, values, signature)
        return self.writes(model) if plan is None else self._written(values, plan)

    def _learn_to_read(self, row: Mapping[str, Any], values: tuple[Any, ...], signature: Signature) -> Model:
        made = self.reads(row)
        if len(self._read_plans) < _MOST:
            plan = tuple(
                (place, _word_of(self.words[name])) if name in self.words and kind is str else (place, copied)
                for place, (name, kind) in enumerate(zip(self._names, signature, strict=True))
                if (name in self.words and kind is str) or kind in (dict, list)
            )
            try:
                agrees = _same(self._of_model(self._made(row, values, plan)), self._of_model(made))
            except (KeyError, ValueError):
                return made  # the word decides here, not the types: another row may tell
            self._read_plans[signature] = plan if agrees else None
            uncopied = tuple((place, convert) for place, convert in plan if convert is not copied)
            self._fresh_plans[signature] = uncopied if agrees else None
        return made

    def _learn_to_write(self, model: Model, values: tuple[Any, ...], signature: Signature) -> Row:
        row = self.writes(model)
        if len(self._write_plans) < _MOST:
            conversions = ((place, _to_write(kind)) for place, kind in enumerate(signature))
            plan = tuple((place, convert) for place, convert in conversions if convert is not None)
            mine = self._written(values, plan)
            agrees = mine.keys() == row.keys() and _same(
                tuple(mine[name] for name in row), tuple(row.values())
            )
            self._write_plans[signature] = plan if agrees else None
        return row

    def _made(self, row: Mapping[str, Any], values: tuple[Any, ...], plan: Plan) -> Model:
        converted = list(values)
        for place, convert in plan:
            converted[place] = convert(converted[place])
        if self.settle is not None:
            self.settle(row, converted, self._places)
        return self.model(*converted)

    def _written(self, values: tuple[Any, ...], plan: Plan) -> Row:
        converted = list(values)
        for place, convert in plan:
            converted[place] = convert(converted[place])
        row = dict(zip(self._names, converted, strict=True))
        return row if self.complete is None else self.complete(row)


_UNKNOWN: Final[Any] = object()


def utc(value: datetime) -> datetime:
    """The same moment in UTC. Raises ``ValueError`` for a naive time: nobody knows which moment it means."""
    if value.tzinfo is UTC:
        return value
    if value.utcoffset() is None:
        raise ValueError("a time must be aware")
    return value.astimezone(UTC)


def copied(value: Any) -> Any:
    """JSON that shares nothing that can change with what was given."""
    if isinstance(value, dict):
        return {name: copied(item) for name, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def _to_write(kind: type) -> Callable[[Any], Any] | None:
    if kind in (dict, list):
        return copied
    if issubclass(kind, datetime):
        return utc
    return str.__str__ if issubclass(kind, str) and kind is not str else None


def _word_of(words: type[StrEnum]) -> Callable[[str], StrEnum]:
    return {word.value: word for word in words}.__getitem__


def _same(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """Equal, and of the same types."""
    return left == right and [*map(type, left)] == [*map(type, right)]
