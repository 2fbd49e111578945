"""What a runbook says: its meaning, and what it tells to do."""

from __future__ import annotations

import re

from attrs import frozen

from casenotes.adapters.agents.findings import ranking
from casenotes.adapters.agents.findings.model import Finding, Kind, Role
from casenotes.core.text import fold

MAX_SECTION = 420
MAX_STEPS = 8

_ATX = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_UNDERLINE = re.compile(r"^(=|-){3,}\s*$")
_ANCHOR = re.compile(r"^\\?\[?\\?#.*$")
_STEP = re.compile(r"^\s{0,3}(?:\d+[.)]|[-*+])\s+(.+)$")
_NUMBERED = re.compile(r"^\s{0,3}\d+[.)]\s+(.+)$")
_DECORATION = re.compile(r"\*\*|__|\\(?=[-_*|#\[\]])")
_MEANING = ("meaning", "summary", "description", "overview", "what it means")
_ACTIONS = ("mitigation", "remediation", "resolution", "fix", "what to do", "action", "steps", "recovery")
_DIAGNOSIS = ("diagnosis", "debugging", "investigation", "troubleshooting", "workflow")


@frozen
class Section:
    """A heading of a runbook and the text under it."""

    title: str
    text: str


def sections(markdown: str) -> list[Section]:
    """The sections of a Markdown text, with headings in either style; what stands before the first is left out."""
    found: list[tuple[str, list[str]]] = []
    lines = _without_front_matter(markdown).splitlines()
    fenced = False
    for at, line in enumerate(lines):
        fenced ^= line.lstrip().startswith("```")
        title = None if fenced else _title(lines, at)
        if title is not None:
            found.append((title, []))
        elif found and not _UNDERLINE.match(line) and not _ANCHOR.match(line.strip()):
            found[-1][1].append(line)
    return [Section(title, "\n".join(body).strip()) for title, body in found]


def _without_front_matter(text: str) -> str:
    return re.sub(r"\A---\n.*?\n---\n", "", text, count=1, flags=re.DOTALL)


def _title(lines: list[str], at: int) -> str | None:
    atx = _ATX.match(lines[at])
    if atx is not None:
        return _plain(atx[2])
    line = lines[at].strip()
    if not line or _UNDERLINE.match(line) or _ANCHOR.match(line):
        return None
    below = [text.strip() for text in lines[at + 1 : at + 3]]
    if below and _ANCHOR.match(below[0]) and below[0]:
        below = below[1:]
    return _plain(line) if below and _UNDERLINE.match(below[0]) else None


def is_runbook(text: str) -> bool:
    """Whether a text found anywhere is written like a runbook."""
    titles = [section.title.casefold() for section in sections(text)]
    return any(_is(title, _MEANING[:1] + _ACTIONS + _DIAGNOSIS) for title in titles)


def runbook_findings(name: str, text: str) -> list[Finding]:
    """What the runbook means by its alert, what it tells to do, else what it tells to check."""
    parts = [part for part in sections(text) if part.text]
    who = f"The runbook for {name}" if name else "The runbook"
    found: list[Finding] = []
    meaning = next((part for part in parts if _is(part.title, _MEANING)), None)
    if meaning is not None:
        found.append(_finding(name, f"{who} says: {_prose(meaning.text)}", ranking.RUNBOOK + 1))
    action = next((part for part in parts if _is(part.title, _ACTIONS)), None)
    if action is not None:
        found.append(_finding(name, f"{who} tells to do: {_steps(action.text)}", ranking.RUNBOOK + 2))
    checks = next((part for part in parts if _is(part.title, _DIAGNOSIS)), None)
    if checks is not None:
        found.append(_finding(name, f"{who} tells to check: {_steps(checks.text)}", ranking.RUNBOOK))
    if not found and parts:
        found.append(_finding(name, f"{who} says: {_prose(parts[0].text)}", ranking.RUNBOOK))
    return found


def _is(title: str, words: tuple[str, ...]) -> bool:
    low = title.casefold()
    return any(low == word or low.startswith(word + " ") for word in words)


def _finding(name: str, text: str, weight: int) -> Finding:
    return Finding(Kind.RUNBOOK, Role.ADVICE, name, text.rstrip(". "), weight)


def _prose(text: str) -> str:
    return fold(_plain(text.split("\n\n")[0]), MAX_SECTION)


def _steps(text: str) -> str:
    pattern = _NUMBERED if _NUMBERED.search(text) or re.search(r"^\d+[.)] ", text, re.M) else _STEP
    steps = [_plain(match[1]) for line in text.splitlines() if (match := pattern.match(line))]
    if not steps:
        return _prose(text)
    if len(steps) == 1:
        return fold(steps[0], MAX_SECTION)
    shown = "; ".join(f"({number}) {step.rstrip('.:;')}" for number, step in enumerate(steps[:MAX_STEPS], 1))
    more = f"; and {len(steps) - MAX_STEPS} more" if len(steps) > MAX_STEPS else ""
    return fold(shown, MAX_SECTION) + more


def _plain(text: str) -> str:
    return _DECORATION.sub("", text).strip()
