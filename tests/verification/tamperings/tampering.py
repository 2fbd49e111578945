"""What a tampering is, and words that many of them share."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

MOMENT = "'2025-01-02 03:04:05.000006'"
THIS_RUN = "WHERE run_id = '{r2}'"


@frozen
class Tampering:
    """What is done, and a breach that it must be told as: kind, session, run, and words of the detail."""

    name: str
    sql: str
    breaches: Sequence[tuple[str, str | None, str | None, str]]
    touched: frozenset[str | None] = field(default=frozenset({"s"}))


def delete_run(*names: str) -> str:
    """SQL that removes runs, by name, with all that is kept of them but their sessions' heads."""
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
