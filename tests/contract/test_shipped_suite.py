"""The suite as others meet it: through the guide, and with nothing but pytest beside it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from casenotes.adapters.memory import MemoryLedger
from casenotes.ports import contract
from casenotes.ports.contract import LedgerContract
from casenotes.ports.contract.commits import CommitsContract
from casenotes.ports.ledger import Ledger

GUIDE = Path(__file__).parents[2] / "docs" / "adapters.md"
ALLOWED = {"attrs", "pytest", *sys.stdlib_module_names}


def test_subclass_in_the_guide_judges_a_ledger() -> None:
    judging, _ = examples()
    judged = judging["TestMyLedger"]()
    assert isinstance(judged, LedgerContract)
    judged.test_ensured_session_is_read_back_equal(judging["open_empty"])


@pytest.mark.parametrize("promise", [name for name in dir(CommitsContract) if name.startswith("test_")])
def test_ledger_that_shares_no_commits_as_the_guide_has_it_keeps_their_promises(promise: str) -> None:
    _, sharing_none = examples()
    without = type("Without", (sharing_none["ThroughWork"], MemoryLedger), {"work": MemoryLedger.work})

    @asynccontextmanager
    async def open_empty() -> AsyncIterator[Ledger]:
        yield without()

    getattr(CommitsContract(), promise)(open_empty)


def examples() -> list[dict[str, Any]]:
    """The modules that the guide shows, each of them run."""
    modules = []
    for shown in re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL):
        module: dict[str, Any] = {"__name__": "guide"}
        exec(compile(shown, str(GUIDE), "exec"), module)
        modules.append(module)
    return modules


def test_suite_imports_nothing_but_pytest_core_and_ports() -> None:
    for file in Path(contract.__path__[0]).glob("*.py"):
        for imported in imports_of(file):
            own = imported.startswith(("casenotes.core.", "casenotes.ports."))
            assert own or imported.partition(".")[0] in ALLOWED, f"{file.name} imports {imported}"


def imports_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    plain = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    return plain | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
