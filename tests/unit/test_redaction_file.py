"""Redaction rules of a team's own: read from a file, refused by entry, and in force while the record is open."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

import casenotes
from casenotes.core.errors import InvalidSettings
from casenotes.core.redaction import added, redact
from casenotes.entrypoints.redaction_file import read_addition

PAGE = (Path(__file__).parents[2] / "docs/redaction.md").read_text("utf-8")
EXAMPLE = PAGE.partition("```toml\n")[2].partition("```")[0]


def written(folder: Path, text: str) -> Path:
    path = folder / "rules.toml"
    path.write_text(text, "utf-8")
    return path


def test_the_documented_file_does_what_the_page_says(tmp_path: Path) -> None:
    with added(read_addition(written(tmp_path, EXAMPLE))):
        assert (
            redact("emp-123456 has door code 1234")
            == "[redacted:employee] has door code [redacted:door-code]"
        )
        assert redact("X-Internal-Key: abc, badgeNumber=7") == (
            "X-Internal-Key: [redacted:field], badgeNumber=[redacted:field]"
        )


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("pattern = [", "is not TOML"),
        ("rules = 1", "'rules' is not known: fields and [[pattern]] are"),
        ('fields = "x"', "fields: must be an array of names"),
        ('fields = ["good-name", "hunter2 x"]', "fields[1]: must be a name of letters"),
        ('fields = [""]', "fields[0]: must be a name of letters"),
        ("pattern = 1", "pattern: must be written as [[pattern]]"),
        ("pattern = [1]", "pattern 1: must be a table with name and pattern"),
        ('[[pattern]]\nname = "a"\npattern = "x"\nkind = 1', "pattern 1: 'kind' is not known"),
        ('[[pattern]]\npattern = "x"', "pattern 1: name: must be lower-case letters"),
        ('[[pattern]]\nname = "Hunter2"\npattern = "x"', "pattern 1: name: must be lower-case letters"),
        (
            '[[pattern]]\nname = "a"\npattern = "x"\n[[pattern]]\nname = "b"',
            "pattern 2 (b): pattern: must be",
        ),
        (
            '[[pattern]]\nname = "a"\npattern = "hunter2("',
            "pattern 1 (a): pattern: is not a regular expression at character 8",
        ),
        ('[[pattern]]\nname = "a"\npattern = "x*"', "pattern 1 (a): pattern: must not match the empty text"),
    ],
)
def test_what_is_wrong_is_told_with_the_file_and_the_entry(tmp_path: Path, text: str, wrong: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidSettings, match="^" + re.escape(f"{path}: {wrong}")) as refused:
        read_addition(path)
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_gone_or_no_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="cannot be read"):
        read_addition(tmp_path / "gone.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSettings, match="must be UTF-8"):
        read_addition(tmp_path / "bytes.toml")


def test_an_open_record_redacts_by_the_file_that_it_was_given(tmp_path: Path) -> None:
    path = written(tmp_path, EXAMPLE)

    async def recorded() -> str:
        async with casenotes.open("memory://", redaction_rules=path) as notes:
            async with notes.run("who is emp-123456?") as run:
                await run.tool("badge.read", {"badge_number": "B7"}, result={"who": "emp-654321"})
                run.answer("emp-123456, by door code 1234")
            trace = await notes.trace(run.session_id)
            return repr(trace)

    stored = asyncio.run(recorded())
    assert "[redacted:employee], by door code [redacted:door-code]" in stored
    assert "{'badge_number': '[redacted:field]'}" in stored
    assert re.search(r"emp-\d|1234|B7", stored) is None
    assert redact("emp-123456") == "emp-123456"


def test_a_wrong_file_stops_the_start(tmp_path: Path) -> None:
    async def opened() -> None:
        async with casenotes.open("memory://", redaction_rules=written(tmp_path, "x = 1")):
            raise AssertionError("it started")

    with pytest.raises(InvalidSettings, match="'x' is not known"):
        asyncio.run(opened())
    with pytest.raises(InvalidSettings, match="REDACTION_RULES: must be an existing TOML file"):
        casenotes.open("memory://", redaction_rules=tmp_path / "gone.toml")
