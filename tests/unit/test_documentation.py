"""The pages speak of what there is: every setting, every test that proves a thing, and no link leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from casenotes.entrypoints.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]


def test_every_setting_is_documented_and_no_other() -> None:
    documented = re.findall(
        r"^\| `(CASENOTES_\w+)`", (ROOT / "docs/settings.md").read_text("utf-8"), re.MULTILINE
    )
    fields = {field.name for field in attrs.fields(Settings)} - {"client_key"}  # read from the API keys
    assert sorted(documented) == sorted(PREFIX + name.upper() for name in fields)


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    links = {
        (page, target)
        for page in pages
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text("utf-8"))
    }
    assert links
    assert [(str(page), target) for page, target in links if not (page.parent / target).exists()] == []


def test_every_file_and_test_that_reliability_rests_on_is_there() -> None:
    page = (ROOT / "docs/reliability.md").read_text("utf-8")
    named = re.findall(r"`((?:src|tests)/[\w/.]+)(?:::(\w+))?`", page)
    rooms = [f"src/{place}" for place in re.findall(r"`((?:adapters|core|entrypoints)/[\w/.]+)`", page)]
    assert named and rooms
    assert [place for place in {*rooms, *(file for file, _ in named)} if not (ROOT / place).exists()] == []
    tests = [(file, test) for file, test in named if test]
    assert [test for file, test in tests if f"def {test}(" not in (ROOT / file).read_text("utf-8")] == []


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"docs/{page.name}" not in readme] == []
