"""What ``docs/tamper-evidence.md`` says of the canonical form is so: checked without a line of ours."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from support.historical import SqliteDatabase
from verification.conftest import Recorded

from casenotes.core.breaches import BreachKind
from casenotes.core.model import AgentStep
from casenotes.core.seal import step_digest
from casenotes.core.words import StepStatus

PAGE = (Path(__file__).parents[2] / "docs" / "tamper-evidence.md").read_text("utf-8")
[SCRIPT] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
[RECORD] = re.findall(r"^```json\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
GOLDEN = set(re.findall(r"\b[0-9a-f]{64}\b", PAGE))


def recomputed(recorded: Recorded) -> list[list[str]]:
    assert isinstance(recorded.database, SqliteDatabase)
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", SCRIPT, str(recorded.database.path)],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    return [line.rsplit(" ", 3) for line in done.stdout.splitlines()]


def test_documented_script_computes_the_stored_digests_from_the_rows(recorded_file: Recorded) -> None:
    stored = recorded_file.database.rows("SELECT session_id, run_id, digest FROM diagnosis_run")
    assert sorted(recomputed(recorded_file)) == sorted(["as sealed", *row.values()] for row in stored)


def test_documented_script_sees_what_was_altered(recorded_file: Recorded) -> None:
    recorded_file.tamper("UPDATE agent_step SET output = 'x' WHERE run_id = '{r2}' AND sequence = 2")
    altered = [run for said, _, run, _ in recomputed(recorded_file) if said == "ALTERED"]
    assert altered == [recorded_file.ids["r2"]]


def test_documented_record_has_the_documented_digest() -> None:
    """The vector that is written down never changes; the service's own digest of these values is that."""
    text = RECORD.strip()
    assert {hashlib.sha256(text.encode()).hexdigest()} == GOLDEN
    values = json.loads(text)
    assert json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":")) == text
    at, status = datetime.fromisoformat(values.pop("created_at")), StepStatus(values.pop("status"))
    assert {step_digest(AgentStep(created_at=at, status=status, **values))} == GOLDEN


def test_every_kind_of_breach_is_explained_and_no_other() -> None:
    table = PAGE.partition("| kind |")[2].partition("\n\n")[0]
    kinds = [
        kind
        for first in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for kind in re.findall(r"`(\w+)`", first)
    ]
    assert sorted(kinds) == sorted(BreachKind)
