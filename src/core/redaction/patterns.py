"""Secrets that are known by their shape, or by the words around them, within one line."""

from __future__ import annotations

import re

from attrs import frozen

from casenotes.core.redaction.marks import MARK, mark

_REACH = 400


@frozen(eq=False)
class LineRule:
    """What a secret looks like. Of a match, the group ``secret`` is replaced, or all of it where there is none.

    A match lies within one line. ``hints``: lower-case text of which a match always holds one.
    ``after``: words of which one stands before the match, within ``_REACH`` characters of the line; ``None``: none
    needs to.
    """

    name: str
    kind: str
    hints: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]
    after: re.Pattern[str] | None = None

    def apply(self, text: str) -> str:
        for pattern in self.patterns:
            text = pattern.sub(self._marked, text)
        return text

    def _marked(self, match: re.Match[str]) -> str:
        begin, end = match.span("secret" if "secret" in match.re.groupindex else 0)
        if begin < 0 or begin == end or _inside_mark(match.string, begin, end):
            return match.group()
        if self.after is not None and not self._stands_after(match):
            return match.group()
        whole = match.string
        return whole[match.start() : begin] + mark(self.kind) + whole[end : match.end()]

    def _stands_after(self, match: re.Match[str]) -> bool:
        assert self.after is not None
        begin = match.start()
        return self.after.search(match.string[max(0, begin - _REACH) : begin].rpartition("\n")[2]) is not None


def _inside_mark(text: str, begin: int, end: int) -> bool:
    """Whether this is a mark or a part of one, which stays as it is: else redacting twice would change something."""
    opened = text.rfind("[redacted:", max(0, begin - 60), begin + len("[redacted:"))
    found = MARK.match(text, opened) if opened >= 0 else None
    return found is not None and found.start() <= begin and end <= found.end()


def line_rule(
    name: str, kind: str, hints: str, *patterns: str, cased: bool = False, after: str | None = None
) -> LineRule:
    """A rule of these patterns; the hints are separated by bars.

    ASCII throughout: else a long s would match an s that no hint holds.
    """
    flags = re.ASCII | re.MULTILINE | (re.RegexFlag(0) if cased else re.IGNORECASE)
    return LineRule(
        name,
        kind,
        tuple(hints.split("|")),
        tuple(re.compile(pattern, flags) for pattern in patterns),
        None if after is None else re.compile(after, flags),
    )


# No nested quantifiers, and a possessive one (``*+``) wherever what follows may begin with the same characters:
# that is what keeps each pattern linear in the text (bench/redaction.py shows it).
BEFORE_FIELDS = (
    line_rule(
        "private-key-base64",
        "private-key",
        "ls0tls1crud",
        r"\bLS0tLS1CRUdJTi(?:BSU0EgUFJJVkFURSBLRV|BQUklWQVRFIEtFW|BFQyBQUklWQVRFIEtFW|BEU0EgUFJJVkFURSBLRV"
        r"|BPUEVOU1NIIFBSSVZBVEUgS0VZ|BFTkNSWVBURUQgUFJJVkFURSBLRV)[A-Za-z0-9+/_=-]*",
        cased=True,
    ),
    line_rule(
        "cookie-header",
        "cookie",
        "cookie",
        r"^[<> \t]*+(?:set-)?cookie:[ \t]*+(?P<secret>[^\s=;:\\]++=[^\r\n]*)",
        r"""(?<![A-Za-z])(?:set-)?cookie[ \t]*+[:=][ \t]*+["']?"""
        r"""(?P<secret>[^\s=;:"'\\]++=(?:[^\r\n"'\\]|\\(?![rn"']))*+)""",
    ),
    line_rule(
        "authorization-header",
        "authorization",
        "authorization",
        # A scheme and what follows it, or what looks like a credential: prose may follow the word as well.
        r"""(?<![A-Za-z])authorization\\*+["']?[ \t]*+[:=][ \t]*+(?:\\*+["'])?"""
        r"""(?P<secret>(?:bearer|basic|digest|token|negotiate|apikey|key|ntlm)[ \t]++[^\s"',;\\]++"""
        r"""|(?=[^\s"',;]{0,200}\d)[^\s"',;\\]{8,}+|[^\s"',;\\]{16,}+)""",
    ),
    line_rule(
        "url-password",
        "url-password",
        "://",
        r"""://[^\s:/?#@"'<>]{0,200}+:(?!\d{1,5}(?:[/?#,]|$))(?P<secret>(?:[^\s"'<>:]|:(?!//)){1,256})@""",
    ),
)

AFTER_FIELDS = (
    line_rule(
        "command-line",
        "password",
        " -u| --user| --proxy-user",
        r"""[ \t](?:-u|--user|--proxy-user)[ \t=]*+["']?[^\s:"']{0,100}+:(?P<secret>[^\s"']++)""",
        after=r"(?<![\w-])(?:curl|wget)\b",
    ),
    line_rule(
        "command-line-p",
        "password",
        " -p| -a",
        r"""[ \t](?-i:-[pa])[ \t]?["']?(?P<secret>(?![-/])[^\s"']++)""",
        after=r"(?<![\w-])(?:mysql\w*|mariadb(?:-dump|-admin)?|sshpass|docker[ \t]+login|mongo\w*|redis-cli)[ \t]",
    ),
    line_rule(
        "netrc",
        "password",
        "password",
        r"\blogin[ \t]++\S++[ \t]++password[ \t]++(?P<secret>\S++)",
        r"^[ \t]*+password[ \t]++(?P<secret>(?=\S{0,200}[\d!@#$%^&*+=])\S++)[ \t\r]*$",
    ),
    line_rule(
        "sql-password",
        "password",
        "password|identified",
        r"\b(?:identified(?:[ \t]++with[ \t]++\S++)?[ \t]++(?:by|as)(?:[ \t]++password)?|(?:encrypted|with|user)[ \t]++"
        r"(?:\S{1,64}[ \t]++)?password|set[ \t]++password[ \t]*+=?)[ \t]*+'(?P<secret>[^'\n]++)'",
    ),
    line_rule(
        "bearer-token",
        "bearer-token",
        "bearer",
        r"\bbearer[ \t]++(?!(?:authentication|authorization|credentials?|schemes?|tokens?)\b)"
        r"(?P<secret>[A-Za-z0-9._~+/=-]{6,}+)",
    ),
    line_rule(
        "basic-credentials",
        "authorization",
        "basic",
        r"\bbasic[ \t]++(?P<secret>[A-Za-z0-9+/]{6,}+={1,2}"
        r"|(?=[A-Za-z+/]{0,100}\d)(?=[a-z0-9+/]{0,100}(?-i:[A-Z]))[A-Za-z0-9+/]{12,}+)",
    ),
    line_rule(
        "jwt",
        "jwt",
        "eyj",
        r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+)*+",
        cased=True,
    ),
    line_rule(
        "aws-key-id",
        "aws-key",
        "akia|asia|agpa|aroa",
        r"(?<![A-Za-z0-9])(?:AKIA|ASIA|AGPA|AROA)[0-9A-Z]{16}(?![0-9A-Za-z])",
        cased=True,
    ),
    line_rule(
        "vendor-token",
        "api-key",
        "aiza|ghp_|gho_|ghs_|ghu_|ghr_|hub_pat_|glpat-|xox|sk-|k_live_|k_test_|npm_|pypi-|ya29|ocspx-|hvs.|p_v1_|sg.|hf_",
        r"(?<![A-Za-z0-9_])(?:AIza[0-9A-Za-z_-]{35}|gh[pousr]_[A-Za-z0-9]{30,}+|github_pat_[A-Za-z0-9_]{22,}+"
        r"|glpat-[A-Za-z0-9_.-]{20,}+|xox[abceoprs]-[A-Za-z0-9-]{10,}+"
        r"|sk-[A-Za-z0-9_-]{20,}+|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+"
        r"|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{40,}+|ya29\.[A-Za-z0-9_-]{20,}+"
        r"|GOCSPX-[A-Za-z0-9_-]{20,}+|hvs\.[A-Za-z0-9_-]{20,}+|dop_v1_[a-f0-9]{64}"
        r"|SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+|hf_[A-Za-z0-9]{30,}+)",
        cased=True,
    ),
    line_rule(
        "webhook",
        "api-key",
        "hook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9_/-]{8,}+)",
        r"discord(?:app)?\.com/api/webhooks/(?P<secret>[A-Za-z0-9_/-]{8,}+)",
        r"webhook\.office\.com/(?P<secret>[A-Za-z0-9_@/-]{8,}+)",
    ),
)
