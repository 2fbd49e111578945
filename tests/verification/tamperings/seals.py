"""Seals, the head of the chain and the session that has it are changed."""

from __future__ import annotations

from verification.tamperings.tampering import THIS_RUN, Tampering, delete_run

_WRONG = "'" + "ab" * 32 + "'"
_SESSION = "WHERE session_id = 's'"

SEALS = [
    Tampering(
        "digest-altered",
        f"UPDATE diagnosis_run SET digest = {_WRONG} {THIS_RUN}",
        [
            ("altered", "s", "r2", "the run itself"),
            ("chain", "s", "r3", "does not follow the run at place 2"),
        ],
    ),
    Tampering(
        "digest-nulled",
        f"UPDATE diagnosis_run SET digest = NULL {THIS_RUN}",
        [("unreadable", "s", "r2", "digest"), ("removed", "s", None, "no run is at place 2")],
    ),
    Tampering(
        "previous-altered",
        f"UPDATE diagnosis_run SET previous_digest = {_WRONG} {THIS_RUN}",
        [
            ("altered", "s", "r2", "the run itself"),
            ("chain", "s", "r2", "does not follow the run at place 1"),
        ],
    ),
    Tampering(
        "previous-nulled",
        f"UPDATE diagnosis_run SET previous_digest = NULL {THIS_RUN}",
        [
            ("altered", "s", "r2", "the run itself"),
            ("chain", "s", "r2", "does not follow the run at place 1"),
        ],
    ),
    Tampering(
        "position-altered",
        f"UPDATE diagnosis_run SET chain_position = 2000000000 {THIS_RUN}",
        [
            ("altered", "s", "r2", "the run itself"),
            ("removed", "s", None, "no run is at place 2"),
            ("added", "s", "r2", "at place 2000000000"),
        ],
    ),
    Tampering(
        "position-negative",
        f"UPDATE diagnosis_run SET chain_position = -1 {THIS_RUN}",
        [("altered", "s", "r2", "the run itself"), ("removed", "s", None, "no run is at place 2")],
    ),
    Tampering(
        "position-nulled",
        f"UPDATE diagnosis_run SET chain_position = NULL {THIS_RUN}",
        [("unreadable", "s", "r2", "place in the chain")],
    ),
    Tampering(
        "entry-digests-of-another-run",
        "UPDATE diagnosis_run SET entry_digests ="
        f" (SELECT entry_digests FROM diagnosis_run WHERE run_id = '{{r1}}') {THIS_RUN}",
        [("altered", "s", "r2", "the run itself"), ("altered", "s", "r2", "step 1")],
    ),
    Tampering(
        "entry-digests-nulled",
        f"UPDATE diagnosis_run SET entry_digests = NULL {THIS_RUN}",
        [("unreadable", "s", "r2", "digest")],
    ),
    Tampering(
        "seal-nulled",
        "UPDATE diagnosis_run SET digest = NULL, previous_digest = NULL, chain_position = NULL,"
        f" entry_digests = NULL {THIS_RUN}",
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
        f"DELETE FROM chat_session {_SESSION}; " + delete_run("r1"),
        [("orphan", "s", None, "has no row"), ("removed", "s", None, "no run is at place 1")],
    ),
    Tampering(
        "epoch-removed",
        "DELETE FROM ledger_epoch",
        [("unreadable", None, None, "since when it makes digests")],
        frozenset({None}),
    ),
]
