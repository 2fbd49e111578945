"""``docs/cli.md`` speaks of each command."""

from __future__ import annotations

import re
from pathlib import Path

from casenotes.entrypoints.cli import COMMANDS

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_each_command_is_documented_and_no_other() -> None:
    documented = re.findall(r"^## (\w+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert sorted(documented) == sorted(command.name for command in COMMANDS)
