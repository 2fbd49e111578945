"""Whatever is changed behind the record's back is told, where it is, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from attrs import field, frozen
from verification.conftest import Recorded

from casenotes.core import seal

MOMENT = "'2025-01-02 03:04:05.000006'"


@frozen
class Tampering:
    """What is done, and a breach that it must be told as: kind, session, run, and words of the detail."""

    name: str
    sql: str
    breaches: Sequence[tuple[str, str | None, str | None, str]]
    touched: frozenset[str | None] = field(default=frozenset({"s"}))


RUN_VALUES = {
    "query": "'another question'",
    "status": "'FAILED'",
    "agent_flow": "'AI_OPS'",
    "created_at": MOMENT,
    "finished_at": "'2099-01-02 03:04:05.000006'",
    "answer": "'another answer'",
    "error_message": "'it failed'",
    "self_evaluation": """'{"score": 1}'""",
    "orchestration_trace": "'[]'",
    "step_count": "3",
    "tool_call_count": "1",
    "degraded": "true",
}
STEP_VALUES = {
    "agent_name": "'composer'",
    "step_type": "'tool'",
    "status": "'FAILED'",
    "created_at": MOMENT,
    "model": "'m-2'",
    "input": "NULL",
    "output": "'look away'",
    "error_message": "'it failed'",
    "input_tokens": "13",
    "output_tokens": "NULL",
    "duration_ms": "99999",
}
TOOL_VALUES = {
    "tool_name": "'logs.delete'",
    "arguments": """'{"n": 2, "q": "r1"}'""",
    "result": """'{"lines":3}'""",
    "status": "'FAILED'",
    "created_at": MOMENT,
    "step_sequence": "NULL",
    "result_truncated": "true",
    "result_size": "1",
    "error_message": "''",
    "duration_ms": "6",
}
CHANGED_PLACES = {"run_id", "session_id", "sequence"}
"""What says where a row belongs: its change has cases of its own below."""


def test_every_field_of_the_canonical_record_is_tampered_with() -> None:
    for values, fields in (
        (RUN_VALUES, seal._RUN),
        (STEP_VALUES, seal._STEP),
        (TOOL_VALUES, seal._TOOL),
    ):
        assert values.keys() == set(fields) - CHANGED_PLACES


def _altered() -> list[Tampering]:
    run = ("altered", "s", "r2", "the run itself")
    found = [
        Tampering(
            f"run-{column}", f"UPDATE diagnosis_run SET {column} = {value} WHERE run_id = '{{r2}}'", [run]
        )
        for column, value in RUN_VALUES.items()
    ]
    for table, what, values in (
        ("agent_step", "step 2", STEP_VALUES),
        ("tool_invocation", "tool call 2", TOOL_VALUES),
    ):
        found += [
            Tampering(
                f"{table}-{column}",
                f"UPDATE {table} SET {column} = {value} WHERE run_id = '{{r2}}' AND sequence = 2",
                [("altered", "s", "r2", what)],
            )
            for column, value in values.items()
        ]
    return [
        *found,
        Tampering(
            "tool_invocation-result-as-text",
            "UPDATE tool_invocation SET result_is_json = false WHERE run_id = '{r2}' AND sequence = 1",
            [("altered", "s", "r2", "tool call 1")],
        ),
    ]


_RUN_COLUMNS = (
    "session_id, query, status, agent_flow, answer, error_message, self_evaluation, step_count, tool_call_count,"
    " created_at, updated_at, finished_at, orchestration_trace, degraded, context_degraded"
)
_SEAL_COLUMNS = "digest, previous_digest, chain_position, entry_digests"


def _insert_run(columns: str, values: str = "", of: str = "r2") -> str:
    names = f"{columns}, " if columns else ""
    return (
        f"INSERT INTO diagnosis_run (run_id, {names}{_RUN_COLUMNS})"
        f" SELECT 'run-new', {values or columns}{', ' if names else ''}{_RUN_COLUMNS}"
        f" FROM diagnosis_run WHERE run_id = '{{{of}}}'"
    )


def _rows(table: str, what: str) -> list[Tampering]:
    at = "run_id = '{r2}' AND sequence"
    return [
        Tampering(
            f"{table}-removed",
            f"DELETE FROM {table} WHERE {at} = 1",
            [
                ("removed", "s", "r2", f"{what} 1"),
                ("counts", "s", "r2", f"2 {what}s and has 1"),
                ("sequence", "s", "r2", what),
            ],
        ),
        Tampering(
            f"{table}-all-removed",
            f"DELETE FROM {table} WHERE run_id = '{{r2}}'",
            [("removed", "s", "r2", f"{what} 1"), ("removed", "s", "r2", f"{what} 2")],
        ),
        Tampering(
            f"{table}-added",
            f"INSERT INTO {table} (session_id, run_id, sequence, status, created_at)"
            f" VALUES ('s', '{{r2}}', 3, 'SUCCESS', {MOMENT})",
            [("added", "s", "r2", f"{what} 3"), ("counts", "s", "r2", f"2 {what}s and has 3")],
        ),
        Tampering(
            f"{table}-renumbered",
            f"UPDATE {table} SET sequence = 7 WHERE {at} = 2",
            [
                ("removed", "s", "r2", f"{what} 2"),
                ("added", "s", "r2", f"{what} 7"),
                ("sequence", "s", "r2", what),
            ],
        ),
        Tampering(
            f"{table}-swapped",
            f"UPDATE {table} SET sequence = 9 WHERE {at} = 1; UPDATE {table} SET sequence = 1 WHERE {at} = 2;"
            f" UPDATE {table} SET sequence = 2 WHERE {at} = 9",
            [("altered", "s", "r2", f"{what} 1"), ("altered", "s", "r2", f"{what} 2")],
        ),
        Tampering(
            f"{table}-moved-to-another-run",
            f"UPDATE {table} SET run_id = '{{r3}}', sequence = 3 WHERE {at} = 2",
            [("removed", "s", "r2", f"{what} 2"), ("added", "s", "r3", f"{what} 3")],
        ),
        Tampering(
            f"{table}-moved-to-another-session",
            f"UPDATE {table} SET session_id = 't' WHERE {at} = 2",
            [("removed", "s", "r2", f"{what} 2"), ("foreign", "t", "r2", f"1 {what} of a run of another")],
            frozenset({"s", "t"}),
        ),
        Tampering(
            f"{table}-moved-to-a-run-of-another-session",
            f"UPDATE {table} SET session_id = 't', run_id = '{{q1}}', sequence = 3 WHERE {at} = 2",
            [("removed", "s", "r2", f"{what} 2"), ("added", "t", "q1", f"{what} 3")],
            frozenset({"s", "t"}),
        ),
        Tampering(
            f"{table}-of-no-run",
            f"UPDATE {table} SET run_id = 'run-none' WHERE {at} = 2",
            [
                ("removed", "s", "r2", f"{what} 2"),
                ("orphan", "s", "run-none", f"1 {what} of a run that is not"),
            ],
        ),
        Tampering(
            f"{table}-of-no-run-at-all",
            f"UPDATE {table} SET run_id = NULL WHERE {at} = 2",
            [("removed", "s", "r2", f"{what} 2")],
        ),
    ]


def _delete_run(*names: str) -> str:
    ids = ", ".join(f"'{{{name}}}'" for name in names)
    return "; ".join(
        f"DELETE FROM {table} WHERE {column} IN ({ids})"
        for table, column in (
            ("agent_step", "run_id"),
            ("tool_invocation", "run_id"),
            ("case_library", "diagnosis_id"),
            ("diagnosis_run", "run_id"),
        )
    )


_GONE = "session's chain"
_RUNS = [
    Tampering("first-run-removed", _delete_run("r1"), [("removed", "s", None, "no run is at place 1")]),
    Tampering("middle-run-removed", _delete_run("r2"), [("removed", "s", None, "no run is at place 2")]),
    Tampering("newest-run-removed", _delete_run("r3"), [("removed", "s", None, "no run is at place 3")]),
    Tampering(
        "two-runs-removed", _delete_run("r1", "r2"), [("removed", "s", None, "no run is at places 1 to 2")]
    ),
    Tampering(
        "all-runs-removed",
        _delete_run("r1", "r2", "r3"),
        [("removed", "s", None, "no run is at places 1 to 3"), ("counts", "s", None, "3 answered turns")],
    ),
    Tampering(
        "newest-run-removed-and-the-head-moved-back",
        _delete_run("r3") + "; UPDATE chat_session SET ended_run_count = 2 WHERE session_id = 's'",
        [("chain", "s", "r2", "remembers as its last")],
    ),
    Tampering(
        "only-the-row-of-a-run-removed",
        "DELETE FROM diagnosis_run WHERE run_id = '{r2}'",
        [
            ("removed", "s", None, "no run is at place 2"),
            ("orphan", "s", "r2", "2 steps of a run that is not there"),
            ("orphan", "s", "r2", "2 tool calls of a run that is not there"),
            ("case", "s", None, "a run that the session does not have"),
        ],
    ),
    Tampering(
        "run-moved-to-another-session",
        "; ".join(
            f"UPDATE {table} SET session_id = 't' WHERE run_id = '{{r2}}'"
            for table in ("diagnosis_run", "agent_step", "tool_invocation")
        ),
        [
            ("removed", "s", None, "no run is at place 2"),
            ("altered", "t", "r2", "the run itself"),
            ("altered", "t", "r2", "step 1"),
            ("added", "t", "r2", "several runs at place 2"),
        ],
        frozenset({"s", "t"}),
    ),
    Tampering(
        "run-renamed",
        "UPDATE diagnosis_run SET run_id = 'run-x' WHERE run_id = '{r2}'",
        [("altered", "s", "run-x", "the run itself"), ("removed", "s", "run-x", "step 1")],
    ),
    Tampering(
        "run-added-without-a-digest",
        _insert_run(""),
        [("added", "s", "run-new", "has no digest"), ("counts", "s", "run-new", "2 steps and has 0")],
    ),
    Tampering(
        "run-added-before-the-others-began-without-a-digest",
        _insert_run("") + "; UPDATE ledger_epoch SET began_at = '2099-01-01 00:00:00.000000'",
        [("added", "s", "run-new", "has no digest")],
    ),
    Tampering(
        "run-added-as-a-copy",
        _insert_run(_SEAL_COLUMNS),
        [("altered", "s", "run-new", "the run itself"), ("added", "s", "run-new", "several runs at place 2")],
    ),
    Tampering(
        "run-added-as-a-copy-before-all-others",
        _insert_run(f"id, {_SEAL_COLUMNS}", f"-5, {_SEAL_COLUMNS}"),
        [("altered", "s", "run-new", "the run itself"), ("added", "s", "run-new", "several runs at place 2")],
    ),
    Tampering(
        "run-added-with-a-made-up-seal-behind-the-last",
        _insert_run(_SEAL_COLUMNS, "digest, digest, 4, entry_digests", of="r3"),
        [
            ("altered", "s", "run-new", "the run itself"),
            ("added", "s", "run-new", "has 3 runs, and this one is at place 4"),
        ],
    ),
    Tampering(
        "run-ended-no-more",
        "UPDATE diagnosis_run SET status = 'RUNNING' WHERE run_id = '{r2}'",
        [("lifecycle", "s", "r2", "is RUNNING"), ("altered", "s", "r2", "the run itself")],
    ),
    Tampering(
        "run-ended-before-it-began",
        f"UPDATE diagnosis_run SET finished_at = {MOMENT} WHERE run_id = '{{r2}}'",
        [("lifecycle", "s", "r2", "finished before it began")],
    ),
    Tampering(
        "run-never-finished",
        "UPDATE diagnosis_run SET finished_at = NULL WHERE run_id = '{r2}'",
        [("lifecycle", "s", "r2", "never finished"), ("altered", "s", "r2", "the run itself")],
    ),
    Tampering(
        "ended-run-leased",
        "UPDATE diagnosis_run SET lease_owner = 'somebody' WHERE run_id = '{r2}'",
        [("lifecycle", "s", "r2", "still has a lease")],
    ),
    Tampering(
        "answer-removed",
        "UPDATE diagnosis_run SET answer = NULL WHERE run_id = '{r2}'",
        [("lifecycle", "s", "r2", "answer contradicts"), ("altered", "s", "r2", "the run itself")],
    ),
]

_WRONG = "'" + "ab" * 32 + "'"
_THIS = "WHERE run_id = '{r2}'"
_SESSION = "WHERE session_id = 's'"
_SEALS = [
    Tampering(
        "digest-altered",
        f"UPDATE diagnosis_run SET digest = {_WRONG} {_THIS}",
        [
            ("altered", "s", "r2", "the run itself"),
            ("chain", "s", "r3", "does not follow the run at place 2"),
        ],
    ),
    Tampering(
        "digest-nulled",
        f"UPDATE diagnosis_run SET digest = NULL {_THIS}",
        [("unreadable", "s", "r2", "digest"), ("removed", "s", None, "no run is at place 2")],
    ),
    Tampering(
        "previous-altered",
        f"UPDATE diagnosis_run SET previous_digest = {_WRONG} {_THIS}",
        [
            ("altered", "s", "r2", "the run itself"),
            ("chain", "s", "r2", "does not follow the run at place 1"),
        ],
    ),
    Tampering(
        "previous-nulled",
        f"UPDATE diagnosis_run SET previous_digest = NULL {_THIS}",
        [
            ("altered", "s", "r2", "the run itself"),
            ("chain", "s", "r2", "does not follow the run at place 1"),
        ],
    ),
    Tampering(
        "position-altered",
        f"UPDATE diagnosis_run SET chain_position = 2000000000 {_THIS}",
        [
            ("altered", "s", "r2", "the run itself"),
            ("removed", "s", None, "no run is at place 2"),
            ("added", "s", "r2", "at place 2000000000"),
        ],
    ),
    Tampering(
        "position-negative",
        f"UPDATE diagnosis_run SET chain_position = -1 {_THIS}",
        [("altered", "s", "r2", "the run itself"), ("removed", "s", None, "no run is at place 2")],
    ),
    Tampering(
        "position-nulled",
        f"UPDATE diagnosis_run SET chain_position = NULL {_THIS}",
        [("unreadable", "s", "r2", "place in the chain")],
    ),
    Tampering(
        "entry-digests-of-another-run",
        "UPDATE diagnosis_run SET entry_digests ="
        f" (SELECT entry_digests FROM diagnosis_run WHERE run_id = '{{r1}}') {_THIS}",
        [("altered", "s", "r2", "the run itself"), ("altered", "s", "r2", "step 1")],
    ),
    Tampering(
        "entry-digests-nulled",
        f"UPDATE diagnosis_run SET entry_digests = NULL {_THIS}",
        [("unreadable", "s", "r2", "digest")],
    ),
    Tampering(
        "seal-nulled",
        "UPDATE diagnosis_run SET digest = NULL, previous_digest = NULL, chain_position = NULL,"
        f" entry_digests = NULL {_THIS}",
        [("added", "s", "r2", "has no digest"), ("removed", "s", None, "no run is at place 2")],
    ),
    Tampering(
        "head-count-raised",
        f"UPDATE chat_session SET ended_run_count = 2000000000 {_SESSION}",
        [("removed", "s", None, "no run is at places 4 to 2000000000")],
    ),
    Tampering(
        "head-count-lowered",
        f"UPDATE chat_session SET ended_run_count = 2 {_SESSION}",
        [("added", "s", "r3", "has 2 runs"), ("chain", "s", "r2", "remembers as its last")],
    ),
    Tampering(
        "head-count-zero",
        f"UPDATE chat_session SET ended_run_count = 0 {_SESSION}",
        [("added", "s", "r1", "has 0 runs"), ("chain", "s", None, "that none has ended")],
    ),
    Tampering(
        "head-digest-altered",
        f"UPDATE chat_session SET last_run_digest = {_WRONG} {_SESSION}",
        [("chain", "s", "r3", "remembers as its last")],
    ),
    Tampering(
        "head-digest-nulled",
        f"UPDATE chat_session SET last_run_digest = NULL {_SESSION}",
        [("chain", "s", "r3", "remembers as its last")],
    ),
    Tampering(
        "turns-altered",
        f"UPDATE chat_session SET message_pair_count = 4 {_SESSION}",
        [("counts", "s", None, "counts 4 answered turns, its runs 3")],
    ),
    Tampering(
        "session-status-altered",
        f"UPDATE chat_session SET status = 'GONE' {_SESSION}",
        [("unreadable", "s", None, "the session's row")],
    ),
    Tampering(
        "session-row-removed",
        f"DELETE FROM chat_session {_SESSION}",
        [("orphan", "s", None, "has no row")],
    ),
    Tampering(
        "session-row-and-first-run-removed",
        f"DELETE FROM chat_session {_SESSION}; " + _delete_run("r1"),
        [("orphan", "s", None, "has no row"), ("removed", "s", None, "no run is at place 1")],
    ),
    Tampering(
        "epoch-removed",
        "DELETE FROM ledger_epoch",
        [("unreadable", None, None, "since when it makes digests")],
        frozenset({None}),
    ),
]

_CASE = "WHERE diagnosis_id = '{r2}'"
_CASES = [
    Tampering(
        "case-removed", f"DELETE FROM case_library {_CASE}", [("case", "s", "r2", "is not in the library")]
    ),
    Tampering(
        "case-withdrawn",
        f"UPDATE case_library SET status = 'WITHDRAWN' {_CASE}",
        [("case", "s", "r2", "is not in the library")],
    ),
    Tampering(
        "case-query-altered",
        f"UPDATE case_library SET query = 'x' {_CASE}",
        [("case", "s", "r2", "another question or answer")],
    ),
    Tampering(
        "case-answer-altered",
        f"UPDATE case_library SET answer = 'x' {_CASE}",
        [("case", "s", "r2", "another question or answer")],
    ),
    Tampering(
        "case-of-another-session",
        f"UPDATE case_library SET session_id = 't' {_CASE}",
        [("case", "s", "r2", "names another session"), ("case", "t", None, "does not have")],
        frozenset({"s", "t"}),
    ),
    Tampering(
        "case-of-no-run",
        f"UPDATE case_library SET diagnosis_id = 'run-none' {_CASE}",
        [("case", "s", None, "does not have"), ("case", "s", "r2", "is not in the library")],
    ),
    Tampering(
        "case-of-no-run-and-no-session",
        f"UPDATE case_library SET diagnosis_id = 'run-none', session_id = NULL {_CASE}",
        [("case", None, None, "of a run that is not there"), ("case", "s", "r2", "is not in the library")],
        frozenset({"s", None}),
    ),
    Tampering(
        "case-of-a-run-not-rated",
        "INSERT INTO case_library (diagnosis_id, query, answer, created_at, updated_at, source, session_id)"
        f" SELECT run_id, query, answer, {MOMENT}, {MOMENT}, 'AUTO', session_id FROM diagnosis_run"
        " WHERE run_id = '{r1}'",
        [("case", "s", "r1", "not rated useful")],
    ),
    Tampering(
        "rating-altered",
        f"UPDATE diagnosis_run SET feedback = 'not_useful' {_THIS}",
        [("case", "s", "r2", "not rated useful")],
    ),
    Tampering(
        "rating-made-up",
        "UPDATE diagnosis_run SET feedback = 'useful' WHERE run_id = '{r1}'",
        [("case", "s", "r1", "is not in the library")],
    ),
]

TAMPERINGS = [
    *_altered(),
    *_rows("agent_step", "step"),
    *_rows("tool_invocation", "tool call"),
    *_RUNS,
    *_SEALS,
    *_CASES,
]


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


UNREADABLE: dict[str, tuple[str, str | None, str]] = {
    "run-status": ("UPDATE diagnosis_run SET status = 'ENDED' WHERE run_id = '{r2}'", "r2", "the run cannot"),
    "run-begin": (
        "UPDATE diagnosis_run SET created_at = 'once' WHERE run_id = '{r2}'",
        "r2",
        "the run cannot",
    ),
    "run-count": (
        "UPDATE diagnosis_run SET step_count = 'two' WHERE run_id = '{r2}'",
        "r2",
        "the run cannot",
    ),
    "run-query-bytes": (
        "UPDATE diagnosis_run SET query = X'00' WHERE run_id = '{r2}'",
        "r2",
        "the run cannot",
    ),
    "run-answer-no-utf8": (
        "UPDATE diagnosis_run SET answer = CAST(X'ff' AS TEXT) WHERE run_id = '{r2}'",
        "r2",
        "the run, or a step",
    ),
    "step-no-utf8": (
        "UPDATE agent_step SET output = CAST(X'ff' AS TEXT) WHERE run_id = '{r2}'",
        "r2",
        "the run, or a step",
    ),
    "step-output-bytes": (
        "UPDATE agent_step SET output = X'00' WHERE run_id = '{r2}' AND sequence = 2",
        "r2",
        "step 2 cannot",
    ),
    "step-sequence": (
        "UPDATE agent_step SET sequence = 'two' WHERE run_id = '{r2}' AND sequence = 2",
        "r2",
        "step 0 cannot",
    ),
    "tool-result": (
        "UPDATE tool_invocation SET result = '{\"lines\":' WHERE run_id = '{r2}' AND sequence = 1",
        "r2",
        "tool call 1 cannot",
    ),
    "tool-result-too-deep": (
        "UPDATE tool_invocation SET result = '" + "[" * 100_000 + "' WHERE run_id = '{r2}' AND sequence = 1",
        "r2",
        "tool call 1 cannot",
    ),
    "entry-digests-text": (
        "UPDATE diagnosis_run SET entry_digests = 'text' WHERE run_id = '{r2}'",
        "r2",
        "the run's digest",
    ),
    "entry-digests-number": (
        "UPDATE diagnosis_run SET entry_digests = 1000000000000 WHERE run_id = '{r2}'",
        "r2",
        "the run's digest",
    ),
    "entry-digests-cut": (
        "UPDATE diagnosis_run SET entry_digests = X'0000' WHERE run_id = '{r2}'",
        "r2",
        "the run's digest",
    ),
    "previous-bytes": (
        "UPDATE diagnosis_run SET previous_digest = X'00' WHERE run_id = '{r2}'",
        "r2",
        "the run's digest",
    ),
    "case-status": (
        "UPDATE case_library SET status = 'LOST' WHERE diagnosis_id = '{r2}'",
        "r2",
        "the run's case cannot",
    ),
    "session-head": ("UPDATE chat_session SET ended_run_count = 'three' WHERE session_id = 's'", None, "row"),
    "session-status-no-utf8": (
        "UPDATE chat_session SET status = CAST(X'ff' AS TEXT) WHERE session_id = 's'",
        None,
        "row",
    ),
}


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
