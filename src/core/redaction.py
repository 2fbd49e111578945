"""Secrets, and what stands in their place: one documented list, applied to all text before it goes anywhere.

Each rule looks at one line only, private keys apart; that is what lets ``StreamRedaction`` redact a stream as it
comes and still give exactly what redacting the whole would have given. Redacting twice changes nothing.
To add a rule, add it to ``RULES`` and a row to the table in the tests.
"""

from __future__ import annotations

import re

from attrs import define, frozen

_NAMES = (
    r"pass(?:word|wd|phrase)|pwd|secret(?:[_-]?(?:access)?[_-]?key)?|client[_-]?secret|api[_-]?key"
    r"|access[_-]?key(?:[_-]?id)?|account[_-]?key|private[_-]?key|(?:auth|access|refresh|id|session|bot)[_-]?token"
)
_VALUE = (  # what follows the sign, and an opening quote if there is one; the quotes themselves stay
    r"""(?:(?<=\\")[^"\n\\]+|(?<=")(?<!\\")(?:\\.|[^"\\\n])+|(?<=')[^'\n]+"""
    r"""|(?<!["'])(?:\d+(?=[,}\]])|[^\s&;"']+))"""
)
_DONE = r"""(?![ \t]*\\?["']?\[redacted:)"""  # what was redacted before stays as it is
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")


@frozen
class Rule:
    """One kind of secret: what it looks like, and what is left of it. Group ``keep`` of the pattern stays."""

    kind: str
    pattern: re.Pattern[str]
    hint: tuple[str, ...]
    """Lower-case text of which a match always holds one: the pattern is only tried where it stands."""

    def apply(self, text: str) -> str:
        return self.pattern.sub(rf"\g<keep>[redacted:{self.kind}]", text)


def _rule(kind: str, pattern: str, *hint: str, flags: re.RegexFlag = re.IGNORECASE) -> Rule:
    # ASCII throughout: else a long s would match an s that no hint holds.
    return Rule(kind, re.compile(pattern, flags | re.ASCII), hint)


RULES: tuple[Rule, ...] = (
    _rule(
        "private-key",
        rf"(?P<keep>){_KEY_BEGIN.pattern}.*?(?:{_KEY_END.pattern}|\Z)",
        "private key",
        flags=re.DOTALL,
    ),
    _rule(
        "cookie",
        rf"""(?P<keep>\b(?:set-)?cookie["']?[ \t]*[:=][ \t]*["']?){_DONE}[^\n"']+""",
        "cookie",
    ),
    _rule(
        "authorization",
        # A scheme and what follows it, or what looks like a credential: prose may follow the word as well.
        rf"""(?P<keep>\b(?:proxy-)?authorization\\?["']?[ \t]*[:=][ \t]*(?:\\?["'])?){_DONE}"""
        r"""(?:(?:bearer|basic|digest|token|negotiate|apikey)[ \t]+[^\s"',;\\]+"""
        r"""|(?=[^\s"',;]*\d)[^\s"',;\\]{8,}|[^\s"',;\\]{16,})""",
        "authorization",
    ),
    _rule(
        "bearer-token",
        r"(?P<keep>\bbearer[ \t]+)(?!(?:authentication|authorization|tokens?)\b)[A-Za-z0-9._~+/=-]{6,}",
        "bearer",
    ),
    _rule(
        "jwt",
        r"(?P<keep>)\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?",
        "eyj",
        flags=re.RegexFlag(0),
    ),
    _rule(
        "url-password",
        r"""(?P<keep>\b[a-z][a-z0-9+.-]{0,30}://[^\s:/?#@"'<>]{0,200}:)(?!\[redacted:|\d{1,5}[/?#])"""
        r"""[^\s"'<>]{1,500}(?=@)""",
        "://",
    ),
    _rule(
        "password",
        rf"""(?P<keep>(?:{_NAMES})\\?["']?[ \t]*(?::=|=>|=|:)[ \t]*(?:\\?["'])?){_DONE}{_VALUE}""",
        "pass",
        "pwd",
        "secret",
        "key",
        "token",
    ),
    _rule(
        "password",
        rf"""(?P<keep>\b(?:token|sig|signature|credential)=(?:\\?["'])?){_DONE}{_VALUE}""",
        "=",
    ),
    _rule(
        "password",
        rf"""(?P<keep>["'](?:token|credentials?)\\?["'][ \t]*:[ \t]*\\?["']){_DONE}{_VALUE}""",
        "token",
        "credential",
    ),
    _rule(
        "password",
        r"(?P<keep>(?<!\S)--(?:password|token|secret|api-key)[ \t]+)(?![ \t]*\[redacted:)\S+",
        "--",
    ),
    _rule("aws-key", r"(?P<keep>)\b(?:AKIA|ASIA|AGPA|AROA)[0-9A-Z]{16}\b", "a", flags=re.RegexFlag(0)),
    _rule(
        "api-key",
        r"(?P<keep>)\b(?:AIza[0-9A-Za-z_-]{35}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}"
        r"|glpat-[A-Za-z0-9_-]{20,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|sk-[A-Za-z0-9_-]{20,}"
        r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{40,}"
        r"|ya29\.[A-Za-z0-9_-]{20,}|hvs\.[A-Za-z0-9_-]{20,}|dop_v1_[a-f0-9]{64}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})",
        "aiza",
        "gh",
        "glpat",
        "xox",
        "sk",
        "rk_",
        "npm_",
        "pypi-",
        "ya29",
        "hvs.",
        "dop_",
        "sg.",
        flags=re.RegexFlag(0),
    ),
)

_KEY_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("cookie", re.compile(r"(?:^|_)(?:set_)?cookies?$")),
    ("authorization", re.compile(r"(?:^|_)authorization$")),
    ("private-key", re.compile(r"(?:^|_)private_?key$")),
    ("api-key", re.compile(r"(?:^|_)(?:api|access|account|secret(?:_access)?)_?key(?:_id)?$")),
    ("password", re.compile(r"(?:^|_)(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?)$")),
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def redact(text: str) -> str:
    """The text with each secret replaced by ``[redacted:<kind>]``."""
    lowered = text.lower()
    for rule in RULES:
        if any(hint in lowered for hint in rule.hint):
            text = rule.apply(text)
    return text


def redaction_for_key(name: str) -> str | None:
    """What stands in place of the value of a JSON field whose name says that it is a secret, else ``None``."""
    snake = _CAMEL.sub("_", name).lower().replace("-", "_").replace(".", "_")
    for kind, pattern in _KEY_KINDS:
        if pattern.search(snake):
            return f"[redacted:{kind}]"
    return None


@define
class StreamRedaction:
    """Redacts text that comes in pieces: joined, its output equals ``redact`` of the joined input.

    It lets go of whole lines only, and of none inside a private key, so that no secret passes in two halves.
    """

    _held: str = ""

    def feed(self, piece: str) -> str:
        """Take a piece; give the text that is safe to send now, perhaps empty."""
        self._held += piece
        end = self._held.rfind("\n") + 1
        for begin, close in reversed(self._keys(end)):
            if begin < end < close:
                end = self._held.rfind("\n", 0, begin) + 1
        ready, self._held = self._held[:end], self._held[end:]
        return redact(ready)

    def finish(self) -> str:
        """The rest, once nothing more comes."""
        rest, self._held = self._held, ""
        return redact(rest)

    def _keys(self, end: int) -> list[tuple[int, int]]:
        """Where private keys begin and close, in order; one that has not closed by ``end`` closes after it."""
        found = []
        begin = _KEY_BEGIN.search(self._held, 0, end)
        while begin is not None:
            close = _KEY_END.search(self._held, begin.end(), end)
            found.append((begin.start(), end + 1 if close is None else close.end()))
            begin = None if close is None else _KEY_BEGIN.search(self._held, close.end(), end)
        return found
