"""Steps and tool calls are removed, added, renumbered and moved."""

from __future__ import annotations

from verification.tamperings.tampering import MOMENT, Tampering


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


ENTRIES = [*_rows("agent_step", "step"), *_rows("tool_invocation", "tool call")]
