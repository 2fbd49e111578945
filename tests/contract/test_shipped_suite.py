"""The suite as others meet it: through the guide, and with nothing but pytest beside it."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

from casenotes.ports import contract
from casenotes.ports.contract import LedgerContract

GUIDE = Path(__file__).parents[2] / "docs" / "adapters.md"
ALLOWED = {"attrs", "pytest", *sys.stdlib_module_names}


def test_subclass_in_the_guide_judges_a_ledger() -> None:
    example = re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    module: dict[str, Any] = {"__name__": "guide"}
    exec(compile(example[1], str(GUIDE), "exec"), module)
    judged = module["TestMyLedger"]()
    assert isinstance(judged, LedgerContract)
    judged.test_ensured_session_is_read_back_equal(module["open_empty"])


def test_suite_imports_nothing_but_pytest_core_and_ports() -> None:
    for file in Path(contract.__path__[0]).glob("*.py"):
        for imported in imports_of(file):
            own = imported.startswith(("casenotes.core.", "casenotes.ports."))
            assert own or imported.partition(".")[0] in ALLOWED, f"{file.name} imports {imported}"


def imports_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    plain = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    return plain | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
