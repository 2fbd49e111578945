"""Whatever is changed behind the record's back is told, where it is, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from verification.conftest import Recorded
from verification.tamperings.cases import CASES
from verification.tamperings.entries import ENTRIES
from verification.tamperings.runs import RUNS
from verification.tamperings.seals import SEALS
from verification.tamperings.tampering import MOMENT, Tampering
from verification.tamperings.unreadable import UNREADABLE
from verification.tamperings.values import CHANGED_PLACES, RUN_VALUES, STEP_VALUES, TOOL_VALUES, VALUES

from casenotes.core import seal

TAMPERINGS = (*VALUES, *ENTRIES, *RUNS, *SEALS, *CASES)


def test_every_field_of_the_canonical_record_is_tampered_with() -> None:
    for values, fields in (
        (RUN_VALUES, seal._RUN),
        (STEP_VALUES, seal._STEP),
        (TOOL_VALUES, seal._TOOL),
    ):
        assert values.keys() == set(fields) - CHANGED_PLACES


def assert_told(recorded: Recorded, tampering: Tampering) -> None:
    told = recorded.cli("verify", "--json")
    assert (told.status, told.err) == (1, ""), told
    breaches = told.json["breaches"]
    names = {run_id: name for name, run_id in recorded.ids.items()}
    found = [
        (one["kind"], one["sessionId"], names.get(one["runId"], one["runId"]), one["detail"])
        for one in breaches
    ]
    for kind, session, run, words in tampering.breaches:
        assert any(one[:3] == (kind, session, run) and words in one[3] for one in found), found
    assert {one[1] for one in found} == tampering.touched, found


QUICK_ON_POSTGRES = {
    "run-self_evaluation",
    "run-created_at",
    "agent_step-output",
    "agent_step-moved-to-another-session",
    "tool_invocation-arguments",
    "tool_invocation-removed",
    "newest-run-removed",
    "all-runs-removed",
    "run-moved-to-another-session",
    "run-added-as-a-copy-before-all-others",
    "run-ended-no-more",
    "digest-nulled",
    "entry-digests-of-another-run",
    "head-count-raised",
    "case-of-no-run-and-no-session",
}
"""One of each kind; the others are the same code on rows of the same values."""


def _everywhere() -> Iterator[ParameterSet]:
    for tampering in TAMPERINGS:
        yield pytest.param("sqlite", tampering, id=f"sqlite-{tampering.name}")
        marks = () if tampering.name in QUICK_ON_POSTGRES else (pytest.mark.long,)
        yield pytest.param("postgres", tampering, id=f"postgres-{tampering.name}", marks=marks)


@pytest.mark.parametrize(("recorded", "tampering"), tuple(_everywhere()), indirect=["recorded"])
def test_tampering_is_told(recorded: Recorded, tampering: Tampering) -> None:
    recorded.tamper(tampering.sql)
    assert_told(recorded, tampering)


def test_what_was_not_tampered_with_is_clean(recorded: Recorded) -> None:
    told = recorded.cli("verify")
    assert (told.status, told.out, told.err) == (0, "verified 2 sessions, 5 runs: every promise holds\n", "")
    assert recorded.cli("verify", "--json").json == {
        "sessions": 2,
        "runs": 5,
        "running": 0,
        "withoutDigest": 0,
        "breaches": [],
    }


def test_one_session_is_verified_by_itself(recorded: Recorded) -> None:
    recorded.tamper("UPDATE agent_step SET output = 'x' WHERE run_id = '{r2}' AND sequence = 1")
    assert recorded.cli("verify", "t").out == "verified 1 session, 2 runs: every promise holds\n"
    told = recorded.cli("verify", "s")
    assert (told.status, told.err) == (1, "")
    assert told.out == (
        f"altered: s {recorded.ids['r2']}: step 1\nverified 1 session, 3 runs: 1 promise broken\n"
    )
    assert "not found" in recorded.cli("verify", "nowhere").refused(1)


ALLOWED: dict[str, str] = {
    "rating": "UPDATE diagnosis_run SET feedback = 'not_useful', feedback_comment = 'x', feedback_at = updated_at"
    " WHERE run_id = '{r1}'",
    "context": "UPDATE diagnosis_run SET context_degraded = true WHERE run_id = '{r2}'",
    "updated": f"UPDATE diagnosis_run SET updated_at = {MOMENT} WHERE run_id = '{{r2}}'",
    "manual-case": "INSERT INTO case_library (diagnosis_id, query, answer, created_at, updated_at, source, session_id)"
    f" VALUES ('x', 'q', 'a', {MOMENT}, {MOMENT}, 'MANUAL', 's')",
    "session-expires": f"UPDATE chat_session SET status = 'EXPIRED', expires_at = {MOMENT}, last_active_at = {MOMENT}",
    "rows-written-anew": "UPDATE agent_step SET id = id + 1000; UPDATE tool_invocation SET id = id + 1000",
    "old-step-number": "UPDATE agent_step SET step_number = 40",
}


def test_what_may_change_after_the_end_is_no_breach(recorded: Recorded) -> None:
    for name, change in ALLOWED.items():
        recorded.tamper(change)
        assert recorded.cli("verify").status == 0, name


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_told_and_hides_nothing_else(recorded_file: Recorded, name: str) -> None:
    sql, run, words = UNREADABLE[name]
    recorded_file.tamper(sql)
    recorded_file.tamper("UPDATE agent_step SET model = 'm-9' WHERE run_id = '{r3}' AND sequence = 1")
    recorded_file.tamper("UPDATE agent_step SET model = 'm-9' WHERE run_id = '{q2}' AND sequence = 1")
    assert_told(
        recorded_file,
        Tampering(
            name,
            sql,
            [
                ("unreadable", "s", run, words),
                ("altered", "s", "r3", "step 1"),
                ("altered", "t", "q2", "step 1"),
            ],
            frozenset({"s", "t"}),
        ),
    )
    places = [one["detail"] for one in recorded_file.cli("verify", "--json").json["breaches"]]
    assert all("no run is at" not in detail for detail in places) or "digest" in words, places


def test_what_no_digest_can_be_made_of_was_altered(recorded_file: Recorded) -> None:
    """``NaN`` is read by Python's JSON, and is none."""
    recorded_file.tamper("UPDATE tool_invocation SET result = 'NaN' WHERE run_id = '{r2}' AND sequence = 1")
    assert_told(recorded_file, Tampering("nan", "", [("altered", "s", "r2", "tool call 1")]))


def test_json_column_that_holds_no_json_was_altered(recorded_file: Recorded) -> None:
    recorded_file.tamper("UPDATE tool_invocation SET arguments = '{' WHERE run_id = '{r2}' AND sequence = 1")
    assert_told(recorded_file, Tampering("broken", "", [("altered", "s", "r2", "tool call 1")]))


EMPTY_ID: Callable[[str], str] = "UPDATE {} SET session_id = '' WHERE run_id = '{{r2}}'".format


def test_rows_under_an_empty_session_id_are_found(recorded: Recorded) -> None:
    recorded.tamper(";".join(map(EMPTY_ID, ("diagnosis_run", "agent_step", "tool_invocation"))))
    breaches: Any = [
        ("removed", "s", None, "no run is at place 2"),
        ("orphan", "", None, "has no row"),
        ("altered", "", "r2", "the run itself"),
    ]
    assert_told(recorded, Tampering("empty", "", breaches, frozenset({"s", ""})))
