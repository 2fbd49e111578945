"""Cases are removed, changed and made up, and so are the ratings that make them."""

from __future__ import annotations

from verification.tamperings.tampering import MOMENT, THIS_RUN, Tampering

_CASE = "WHERE diagnosis_id = '{r2}'"

CASES = [
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
        f"UPDATE diagnosis_run SET feedback = 'not_useful' {THIS_RUN}",
        [("case", "s", "r2", "not rated useful")],
    ),
    Tampering(
        "rating-made-up",
        "UPDATE diagnosis_run SET feedback = 'useful' WHERE run_id = '{r1}'",
        [("case", "s", "r1", "is not in the library")],
    ),
]
