"""Private keys in PEM: the one secret that takes many lines."""

from __future__ import annotations

import re

from casenotes.core.redaction.marks import mark

KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BODY = (
    re.compile(  # of a key whose end was cut off: whole lines of base64, and the headers that a key may have
        r"(?:(?:[ \t\r\n|>]|\\+[nrt])++"
        r"(?:[A-Za-z0-9+/=]{40,}+|[A-Za-z0-9+/=]++(?=[ \t\r]*+(?:\n|\\|[\"']|\Z))"
        r"|(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\n\\\"]*+))*+"
    )
)


def redact_private_keys(text: str) -> str:
    """Each key from its begin to its end; where the end was cut off, as far as the text looks like a key."""
    kept, done, may_end = [], 0, True
    begin = KEY_BEGIN.search(text)
    while begin is not None:
        end = KEY_END.search(text, begin.end()) if may_end else None
        may_end = end is not None  # if there is no end after this key, there is none after the next
        close = end or _BODY.match(text, begin.end())
        assert close is not None  # the body may be empty
        kept += [text[done : begin.start()], mark("private-key")]
        done = close.end()
        begin = KEY_BEGIN.search(text, done)
    return "".join([*kept, text[done:]])
