"""What is counted of an answer."""

from __future__ import annotations

import pytest

from casenotes.adapters.evidence import Fact
from casenotes.core.baseline.judging import claims, judge


def test_a_fact_is_stated_when_the_answer_holds_each_of_its_terms() -> None:
    facts = [Fact("full", ("disk", "full|no space left")), Fact("slow", ("slow",))]
    assert [one.stated for one in judge(facts, "The DISK has No Space Left.")] == [True, False]
    assert [one.stated for one in judge(facts, None)] == [False, False]


@pytest.mark.parametrize(
    ("answer", "claimed"),
    [
        ("The pool is exhausted [T1].\n", ["The pool is exhausted [T1]."]),
        ("- one [T1]\n* two\n12. three\n", ["one [T1]", "two", "three"]),
        ("# Report\n\nIt broke.\n\n## Next\n\n- do it\n", ["It broke."]),
        ("**Evidence gaps**\n- the log\n**What it shows**\n- a thing\n", ["a thing"]),
        ("Nothing was found.\nNo alert is firing [T1].\nFailed: x\n", []),
        (
            "**The evidence points to this:** `a` rose [T1].",
            ["**The evidence points to this:** `a` rose [T1]."],
        ),
        ("", []),
    ],
)
def test_claims_are_what_needs_evidence(answer: str, claimed: list[str]) -> None:
    assert claims(answer) == claimed
