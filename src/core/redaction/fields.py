"""Secrets that are known by the name of the field they stand in: one list of names, for text and for JSON."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from enum import Enum, auto
from functools import lru_cache
from typing import Any

from attrs import field, frozen

from casenotes.core.redaction.hints import anchors, lowered
from casenotes.core.redaction.marks import mark


class Trust(Enum):
    """How much the name alone says."""

    SURE = auto()
    """What stands in it is a secret."""
    PROSE = auto()
    """So it is, but the word also ends sentences: after ``token: `` only what looks like a credential is one."""
    SHAPE = auto()
    """Only what looks like a credential is one, wherever it stands."""


@frozen
class Name:
    """What the name of a field says about its value."""

    kind: str
    trust: Trust


_MORE = r"(?:_?\d{1,3}|_(?:confirmation|confirm|hash|old|new|base64|b64))?$"
_KEYS = (
    "api|access|account|secret|secret_access|shared_access|subscription|storage|encryption|signing|master|consumer"
    "|deploy|functions|auth|webhook|hmac|service_role|app|application"
)
_SHIPPED: tuple[tuple[re.Pattern[str], Name | None], ...] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        # A place in a list of pages is no secret.
        (r"(?:next|page|continu\w*|cursor|sync|resume|start|cancellation)_?tokens?$", None),
        (r"(?:^|_)(?:set_)?cookies?$", Name("cookie", Trust.SURE)),
        (r"(?:^|_)authorization$", Name("authorization", Trust.SURE)),
        (r"(?:^|_)(?:private_?key(?:_pem)?|ssh_privatekey|tls_key)$", Name("private-key", Trust.SURE)),
        (rf"(?:^|_|(?<=api)|(?<=access))(?:{_KEYS})_?key(?:_id)?{_MORE}", Name("api-key", Trust.SURE)),
        (rf"(?:password|passwd|passphrase|secret){_MORE}", Name("password", Trust.SURE)),
        (rf"(?:^|_)(?:pwd|pgpass|pass_?code){_MORE}", Name("password", Trust.SURE)),
        (
            r"(?:auth|access|refresh|id|session|bot|bearer|api|csrf|xsrf|security|identity|jwt)_?token$",
            Name("password", Trust.SURE),
        ),
        (rf"(?:^|_)(?:pass|pw|token|credentials?){_MORE}", Name("password", Trust.PROSE)),
        (
            r"(?:^|_)(?:auth|sig|signature|session_?id|sid|jsessionid|phpsessid)$",
            Name("password", Trust.SHAPE),
        ),
    )
)
_SHIPPED_HINTS = (
    "pass",
    "pwd",
    "pw",
    "secret",
    "token",
    "key",
    "cred",
    "auth",
    "cookie",
    "sig",
    "sid",
    "sess",
)
_LAST_WORDS = (
    *(
        "password",
        "passwd",
        "pwd",
        "passphrase",
        "passcode",
        "pass",
        "pgpass",
        "pw",
        "secret",
        "token",
        "key",
        "id",
    ),
    *(
        "credential",
        "credentials",
        "auth",
        "sig",
        "signature",
        "sid",
        "cookie",
        "cookies",
        "authorization",
        "pem",
    ),
    *("confirmation", "confirm", "hash", "old", "new"),
)
_SHIPPED_ENDINGS = frozenset(word[-2:] for word in _LAST_WORDS) | {
    before + digit for before in "0123456789" + "deyntslw" + "_-." for digit in "0123456789"
}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 100


def _snake(name: str) -> str:
    return _SEPARATORS.sub("_", _CAMEL.sub("_", name[-_LONGEST_NAME:]).lower()).strip("_")


def _snakes(names: Collection[str]) -> frozenset[str]:
    return frozenset(map(_snake, names))


@frozen(eq=False)
class FieldNames:
    """The names of secret fields: the shipped ones, and ``more``, whose values are of the kind ``field``.

    A name of ``more`` stands for itself in any spelling (``x-internal-key``, ``X_INTERNAL_KEY``, ``xInternalKey``)
    and for any longer name that ends with it as a word of its own.
    """

    more: frozenset[str] = field(default=frozenset[str](), converter=_snakes)
    hints: tuple[str, ...] = field(init=False)
    """Lower-case text of which every name that is found in text holds one."""

    endings: frozenset[str] = field(init=False)
    """The last two characters of every name that is found in text, in lower case."""

    _anywhere: re.Pattern[str] = field(init=False)
    _before_sign: re.Pattern[str] = field(init=False)

    @hints.default
    def _hints(self) -> tuple[str, ...]:
        return (*_SHIPPED_HINTS, *sorted(max(name.split("_"), key=len) for name in self.more))

    @endings.default
    def _endings(self) -> frozenset[str]:
        return _SHIPPED_ENDINGS | {name[-2:] for name in self.more}

    @_anywhere.default
    def _make_anywhere(self) -> re.Pattern[str]:
        return anchors(self.hints)

    @_before_sign.default
    def _make_before_sign(self) -> re.Pattern[str]:
        return anchors(self.hints, then=rf"""[\w.-]{{0,{_LONGEST_NAME}}}+(?:\\*+["'])?[ \t]*+[:=]""")

    def may_say(self, name: str) -> bool:
        """Whether a name may say anything, told faster than by looking it up: a time, a date or a pod says nothing."""
        return self._anywhere.search(lowered(name)) is not None

    def may_stand_in(self, text: str) -> bool:
        """Whether a name that may say anything stands before a colon or an equals sign."""
        return self._before_sign.search(lowered(text)) is not None

    def look_up(self, name: str) -> Name | None:
        """What this name says, ``None`` if it is no name of a secret."""
        return _look_up(self, name) if len(name) <= _LONGEST_NAME else _look_up(self, name[-_LONGEST_NAME:])

    def joined(self, names: Collection[str]) -> FieldNames:
        """These names and more."""
        return FieldNames(self.more | frozenset(names))

    def mark_for(self, name: str, value: object) -> str | None:
        """What stands in place of the value of a JSON field, ``None`` where the value stays.

        ``None``, booleans and the empty string stay, since they tell that no secret was given, and so do objects, whose
        own fields are looked at, what only names a secret (``${DB_PASSWORD}``), and a number in a field such as
        ``token``, which counts.
        """
        said = self.look_up(name)
        if said is None or value is None or isinstance(value, bool | Mapping):
            return None
        if isinstance(value, str):
            if not value.strip() or HARMLESS.fullmatch(value) or is_directory(name, value):
                return None
            return mark(said.kind) if said.trust is not Trust.SHAPE or CREDENTIAL.fullmatch(value) else None
        counts = said.trust is not Trust.SURE and isinstance(value, int | float)
        return None if counts or said.trust is Trust.SHAPE else mark(said.kind)

    def masked(self, value: Mapping[Any, object]) -> Mapping[Any, object]:
        """An object without the secrets that another of its fields tells of: the same, where it has none.

        ``{"name": "DB_PASSWORD", "value": ...}``, as a container's environment has it, and all the data of what is of
        ``"kind": "Secret"``.
        """
        if "value" in value and isinstance(name := value.get("name", value.get("key")), str):
            put = self.mark_for(name, value["value"])
            return value if put is None or isinstance(value["value"], Mapping) else {**value, "value": put}
        if "kind" in value and value["kind"] == "Secret":
            return {
                **value,
                **{name: _all_marked(value[name]) for name in ("data", "stringData") if name in value},
            }
        return value


def _all_marked(data: object) -> object:
    if not isinstance(data, Mapping):
        return data
    return {name: mark("password") if held else held for name, held in data.items()}


@lru_cache(maxsize=4096)
def _look_up(names: FieldNames, name: str) -> Name | None:
    snake = _snake(name)
    for own in names.more:
        if snake == own or snake.endswith("_" + own):
            return Name("field", Trust.SURE)
    for pattern, said in _SHIPPED:
        if pattern.search(snake):
            return said
    return None


HARMLESS = re.compile(
    r"(?:null|none|nil|true|false|undefined|unset|empty|\(?not set\)?|<[^<>\n]{0,80}>|\$\{[\w.:-]{1,100}\}"
    r"|\$\([\w.]{1,100}\)|\{\{[^{}\n]{0,100}\}\})",
    re.IGNORECASE | re.ASCII,
)
"""What says that there is no secret, or only where it is."""

CREDENTIAL = re.compile(
    r"(?=[^\d]{0,100}\d)[\w.+/%~-]{20,}={0,2}|(?=[a-z\d+/]{0,100}[A-Z])[A-Za-z0-9+/]{10,}={0,2}", re.ASCII
)
"""What looks like a credential: long and with a digit, or base64 with a capital in it."""


def is_directory(name: str, value: str) -> bool:
    """Whether this is the working directory, as each listing of an environment has it."""
    return name in ("PWD", "OLDPWD", "pwd") and value.startswith("/")
