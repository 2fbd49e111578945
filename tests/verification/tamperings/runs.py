"""Runs are removed, added, moved and ended otherwise than they did."""

from __future__ import annotations

from verification.tamperings.tampering import MOMENT, Tampering, delete_run

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


RUNS = [
    Tampering("first-run-removed", delete_run("r1"), [("removed", "s", None, "no run is at place 1")]),
    Tampering("middle-run-removed", delete_run("r2"), [("removed", "s", None, "no run is at place 2")]),
    Tampering("newest-run-removed", delete_run("r3"), [("removed", "s", None, "no run is at place 3")]),
    Tampering(
        "two-runs-removed", delete_run("r1", "r2"), [("removed", "s", None, "no run is at places 1 to 2")]
    ),
    Tampering(
        "all-runs-removed",
        delete_run("r1", "r2", "r3"),
        [("removed", "s", None, "no run is at places 1 to 3"), ("counts", "s", None, "3 answered turns")],
    ),
    Tampering(
        "newest-run-removed-and-the-head-moved-back",
        delete_run("r3") + "; UPDATE chat_session SET ended_run_count = 2 WHERE session_id = 's'",
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
