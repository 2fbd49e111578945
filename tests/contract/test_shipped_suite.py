"""The suite as others meet it: through the guide, and with nothing but pytest beside it."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

from casenotes.ports import contract
from casenotes.ports.contract import LedgerContract
from casenotes.ports.ledger import Ledger

GUIDE = Path(__file__).parents[2] / "docs" / "adapters.md"
ALLOWED = {"attrs", "pytest", *sys.stdlib_module_names}


def test_subclass_in_the_guide_judges_a_ledger() -> None:
    judging, _ = examples()
    judged = judging["TestMyLedger"]()
    assert isinstance(judged, LedgerContract)
    judged.test_ensured_session_is_read_back_equal(judging["open_empty"])


def test_ledger_in_the_guide_has_all_that_a_ledger_has() -> None:
    _, sharing_none = examples()
    names = {name for name in vars(Ledger) if not name.startswith("_")}
    mine = sharing_none["MyLedger"]()
    assert {name for name in names if callable(getattr(mine, name, None))} == names


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
