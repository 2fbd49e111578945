"""Each field of the canonical record is given another value."""

from __future__ import annotations

from verification.tamperings.tampering import MOMENT, Tampering

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
"""What says where a row belongs: its change is a tampering with entries or runs."""


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


VALUES = _altered()
