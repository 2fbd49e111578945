"""The little of PromQL that must be understood: quoting a label's value, and what an alert's expression measures."""

from __future__ import annotations

import re

_THRESHOLD = re.compile(r"\s*(?:bool\b\s*)?[-+]?[\d.][-+*/^\d.eE()\s_]*\Z")
_SET_OPERATOR = re.compile(r"(?:and|or|unless)\b", re.I)
_OPENING, _CLOSING = "([{", ")]}"
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def matcher(label: str, value: str) -> str:
    """``label="value"``, quoted. Raises ``ValueError`` for what cannot be a label's name."""
    if not _LABEL.fullmatch(label):
        raise ValueError("not the name of a label")
    return f'{label}="{quoted(value)}"'


def quoted(value: str) -> str:
    """A text as it stands between double quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def measured(expression: str) -> str:
    """What an alert's expression compares with a number: ``load > 4`` measures ``load``.

    The expression as it is where it does not end in such a comparison, or joins several conditions: a part of it
    would say something else.
    """
    at = _last_comparison(expression)
    if at is None:
        return expression.strip()
    left, right = expression[: at[0]].strip(), expression[at[1] :]
    return left if left and _THRESHOLD.match(right) else expression.strip()


def _last_comparison(expression: str) -> tuple[int, int] | None:
    """Where the one comparison outside all brackets stands; ``None`` where there is none, or more than one."""
    found: list[tuple[int, int]] = []
    depth, at = 0, 0
    while at < len(expression):
        character = expression[at]
        if character in "\"'`":
            at = _end_of_text(expression, at)
            continue
        if character == "#":
            at = expression.find("\n", at) if "\n" in expression[at:] else len(expression)
            continue
        depth += (character in _OPENING) - (character in _CLOSING)
        if depth == 0:
            word_before = at > 0 and (expression[at - 1].isalnum() or expression[at - 1] in "_:")
            if not word_before and _SET_OPERATOR.match(expression, at):
                return None
            two = expression[at : at + 2]
            if two in ("==", "!=", ">=", "<="):
                found.append((at, at + 2))
                at += 2
                continue
            if character in "<>":
                found.append((at, at + 1))
        at += 1
    return found[0] if len(found) == 1 else None


def _end_of_text(expression: str, start: int) -> int:
    quote, at = expression[start], start + 1
    while at < len(expression) and expression[at] != quote:
        at += 2 if expression[at] == "\\" and quote != "`" else 1
    return at + 1
