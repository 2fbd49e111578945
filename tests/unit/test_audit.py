"""An audit of the dependencies is clean only if every one of them was audited."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "audit.py"
CLEAN = {"name": "a", "version": "1", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "Dependency not found on PyPI and could not be audited: b (1)"}
FIXED = {"name": "c", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"], "aliases": []}]}
UNFIXED = {"name": "d", "version": "3", "vulns": [{"id": "PYSEC-2", "fix_versions": [], "aliases": []}]}


def script() -> Any:
    found = importlib.util.spec_from_file_location("audit", SCRIPT)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("packages", "says", "status"),
    [
        ([CLEAN, CLEAN], ["2 packages, no known vulnerability"], 0),
        (
            [CLEAN, FIXED, UNFIXED],
            ["c 2: PYSEC-1, fixed in 2.1", "d 3: PYSEC-2, fixed in no version yet"],
            1,
        ),
        (
            [SKIPPED, SKIPPED],
            ["no package was audited; the vulnerability service did not answer for them"],
            2,
        ),
        ([CLEAN, SKIPPED], ["not audited: b; the vulnerability service did not answer for them"], 2),
        ([], ["no package was audited; the vulnerability service did not answer for them"], 2),
        (
            [FIXED, SKIPPED],
            [
                "c 2: PYSEC-1, fixed in 2.1",
                "not audited: b; the vulnerability service did not answer for them",
            ],
            1,
        ),
    ],
)
def test_the_verdict_tells_what_was_found_and_what_was_not_asked(
    packages: list[dict[str, Any]], says: list[str], status: int
) -> None:
    assert script().verdict({"dependencies": packages, "fixes": []}) == (says, status)


def test_a_service_that_cannot_be_reached_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """pip-audit itself, whose way out leads to a port of this machine where nobody answers."""
    for proxy in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")
    for exempt in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(exempt, raising=False)
    lock = tmp_path / "lock"
    lock.write_text(f"attrs==25.4.0 --hash=sha256:{'0' * 64}\n")
    assert script().main(str(lock), "--timeout", "5", "--cache-dir", str(tmp_path / "cache")) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert (
        printed.err
        == "audit: no package was audited; the vulnerability service cannot be reached from here\n"
    )
