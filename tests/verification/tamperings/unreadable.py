"""Values that casenotes never writes and cannot read, in a database that keeps any."""

from __future__ import annotations

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
