"""The suite that ships, against the baseline that is committed: nothing got worse but what is expected to."""

from __future__ import annotations

from pathlib import Path

from baseline.making import COMMITTED, EXPECTED, SUITE, run

from casenotes.core.baseline.diff import compare
from casenotes.entrypoints.baseline.files import read_expectations, read_report
from casenotes.entrypoints.baseline.suite import read_suite


def test_no_diagnosis_got_worse(tmp_path: Path) -> None:
    made = run(SUITE, tmp_path / "new.json").report
    found = compare(read_report(COMMITTED), made, read_expectations(EXPECTED))
    again = "; if that is right, run make baseline or name it in baseline/expected.json"
    assert [drift.as_json() for drift in found.drifts if drift.reason is None] == [], again
    assert (found.added, found.removed, found.marks, found.stale) == ((), (), {}, ()), again


def test_the_suite_can_be_read_and_each_incident_has_facts() -> None:
    suite = read_suite(SUITE)
    assert suite.unreadable == ()
    assert len(suite.incidents) >= 8
    assert all(one.incident.facts and one.incident.id == one.path.name for one in suite.incidents)


def test_the_suite_covers_the_kinds_of_evidence() -> None:
    parts = {name.partition("/")[0] for one in read_suite(SUITE).incidents for name in one.evidence}
    assert parts >= {"alerts", "observations", "metrics", "logs", "runbooks"}
    kinds = {one.incident.id.partition("_")[0] for one in read_suite(SUITE).incidents}
    assert kinds >= {"metrics", "logs", "containers", "runbook", "no", "decoy", "source", "contradiction"}
    assert any(one.incident.decoys for one in read_suite(SUITE).incidents)


def test_the_committed_baseline_is_whole() -> None:
    assert read_report(COMMITTED).is_whole
